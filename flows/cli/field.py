"""`bsl field TEXT…`: which method helps on somebody's own text, by one budget each and one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flows.cli.terminal.log_lines import printable
from flows.cli.terminal.options import (
    TAKEN,
    add_json,
    add_reading_options,
    add_settings,
    add_site_options,
    given_reading,
    print_json,
    print_line,
    print_table,
    tables_of,
)
from flows.cli.terminal.overrides import changes_of
from flows.cli.terminal.start import begin

if TYPE_CHECKING:
    import argparse

    from flows.sweep.method_settings import FieldSettings
    from storage.artifacts.refs import FieldRef
    from storage.artifacts.store import Store


def define_field(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    from flows.sweep.methods import NAMES

    parser.add_argument("texts", nargs="+", metavar="TEXT", help="files, folders, patterns with *, or data sets")
    parser.add_argument(
        "--encoder",
        default="embedded:bert-mini",
        help="to start from: folder, Hub id, embedded:<name>, checkpoint/<key> (embedded:bert-mini)",
    )
    parser.add_argument("--labels", metavar="FILE", help="texts with classes, or pairs of sentences with scores")
    parser.add_argument(
        "--budget", default="2m", help="of training, for each method: seconds 90s, minutes 10m or steps 200steps (2m)"
    )
    parser.add_argument("--methods", help=f"only these, separated by commas: {', '.join(NAMES)}")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each method, with training.seed 0, 1, … (1)")
    parser.add_argument("--sentences", type=int, default=20_000, help="most sentences that are learnt (20000)")
    parser.add_argument("--teacher", help="encoder that teaches in distillation (by what --encoder can)")
    parser.add_argument(
        "--translators", choices=("embedded", "opus-mt"), default="embedded", help="of round trips (embedded)"
    )
    add_reading_options(parser)
    add_settings(parser, "such as held=250 or may_forget=0")
    add_json(parser)
    add_site_options(parser)
    parser.set_defaults(call=_field)


def settings_of(arguments: argparse.Namespace) -> FieldSettings:
    """What is tried, by the options of a call.

    Raises:
        ValueError: a method, a field or a value is not known.
    """
    from flows.config import override
    from flows.sweep.method_settings import FieldSettings, budget_of
    from flows.sweep.methods import methods_of

    names = arguments.methods.split(",") if arguments.methods else None
    methods_of(names)
    options = {name: getattr(arguments, name) for name in ("seeds", "sentences", "teacher", "translators")}
    budget, changes = budget_of(arguments.budget).model_dump(), changes_of(arguments.set)
    if isinstance(own := changes.get("budget"), dict):
        # It is of seconds or of steps: the one that is set takes the place of the other.
        said = any(value is not None for value in own.values())
        changes["budget"] = (dict.fromkeys(budget) if said else budget) | own
    given = {"budget": budget, "methods": names, **options, **given_reading(arguments)}
    return override(FieldSettings(), given | changes)


def _field(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)  # what is wrong is said before anything is started
    start = begin(arguments)
    from flows.sweep.field import field, located
    from tasks.embedding.encoders import check_there

    files, labels = located(start.site, arguments.texts, arguments.labels, settings)
    for name in filter(None, (arguments.encoder, settings.teacher)):
        check_there(start.site, name)
    if not arguments.json:
        print_table(TAKEN, [source.told for source in files])
        if labels is not None:
            print(printable(labels.told))
    ref = start.run(
        field, [], texts=arguments.texts, encoder=arguments.encoder, labels=arguments.labels, settings=settings
    )
    if ref is None:
        return 1
    store = start.site.open_store()
    if arguments.json:
        taken = {"taken": [source.told for source in files], "labels": labels.told if labels else None}
        print_json(_outcome(store, ref) | taken)
    else:
        _conclude(store, ref)
    return 0


def _outcome(store: Store, ref: FieldRef) -> dict[str, Any]:
    from tasks.reporting.field import summary_of
    from tasks.reporting.publish import page_of

    said = summary_of(store, ref).said
    return {"field": ref.path, "page": page_of(store, ref), "said": said, **tables_of(store, ref)}


def _conclude(store: Store, ref: FieldRef) -> None:
    from tasks.reporting.field import summary_of
    from tasks.reporting.publish import page_of

    summary = summary_of(store, ref)
    print_table("Your text: figures × 100, differences from the encoder as it is", summary.rows)
    for line in summary.said:
        print_line(line)
    print(f"page:    {page_of(store, ref)}")
