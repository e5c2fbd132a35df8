"""`bsl field TEXT…`: which method helps on somebody's own text, by one budget each and one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.cli.options import add_site_options, print_table
from flows.cli.settings import changes_of
from flows.cli.starting import be_quiet, failed
from flows.server import start_server, use_server
from flows.site import site_of

if TYPE_CHECKING:
    import argparse

    from storage.refs import FieldRef
    from storage.store import Store


def define_field(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    from flows.recipes.field import NAMES

    parser.add_argument("texts", nargs="+", metavar="TEXT", help="files, folders, patterns with *, or data sets")
    parser.add_argument(
        "--encoder",
        default="embedded:bert-mini",
        help="folder, Hub id, embedded: name or checkpoint/<key> to start from",
    )
    parser.add_argument("--labels", metavar="FILE", help="texts with classes, or pairs of sentences with scores")
    parser.add_argument(
        "--budget", default="2m", help="of training, for each method: seconds 90s, minutes 10m or steps 200steps (2m)"
    )
    parser.add_argument("--methods", help=f"only these, separated by commas: {', '.join(NAMES)}")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each method, with training.seed 0, 1, … (1)")
    parser.add_argument("--sentences", type=int, default=20_000, help="most sentences that are learnt (20000)")
    parser.add_argument("--teacher", help="encoder that teaches in distillation (by what --encoder can)")
    parser.add_argument("--translators", choices=("embedded", "opus-mt"), default="embedded", help="of round trips")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="such as held=250 or may_forget=0; repeat"
    )
    add_site_options(parser)
    parser.set_defaults(call=_field)


def _field(arguments: argparse.Namespace) -> int:
    from flows.recipes.field import FieldSettings, budget_of, methods_of

    names = arguments.methods.split(",") if arguments.methods else None
    methods_of(names)  # what is wrong is said before anything is started
    settings = FieldSettings.model_validate(
        {
            "budget": budget_of(arguments.budget),
            "methods": names,
            "seeds": arguments.seeds,
            "sentences": arguments.sentences,
            "teacher": arguments.teacher,
            "translators": arguments.translators,
            **changes_of(arguments.set),
        }
    )
    use_server()
    if not arguments.debug:
        be_quiet()
    embedded = start_server()
    site = site_of(vars(arguments))
    from flows.cli.watching import watching
    from flows.field import field, located

    files, labels = located(site, arguments.texts, arguments.labels)
    print_table("What your files were taken to hold", [source.told for source in files])
    if labels is not None:
        print(labels.told)
    if embedded is not None:
        embedded.wait()
    store = site.open_store()
    with watching(store, []):
        state = field(arguments.texts, arguments.encoder, arguments.labels, settings, site, return_state=True)
    if not state.is_completed():
        return failed(state.result(raise_on_failure=False))
    _conclude(store, state.result())
    return 0


def _conclude(store: Store, ref: FieldRef) -> None:
    from tasks.field import PAGE, PLOT, summary_of

    folder, summary = store.fetch(ref), summary_of(store, ref)
    print_table("Your text: figures × 100, differences from the encoder as it is", summary.rows)
    print("\n".join(line.replace("**", "") for line in summary.said))
    print(f"page:    {folder / PAGE}\nplot:    {folder / PLOT}")
