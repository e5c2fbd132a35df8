"""`bsl field TEXT…`: which method helps on somebody's own text, by one budget each and one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from flows.cli.sweep import show_sweep
from flows.cli.terminal.log_lines import printable
from flows.cli.terminal.options import (
    ENCODER_FORMS,
    TEXT_FORMS,
    AskedPrecision,
    Changes,
    Output,
    Reading,
    Site,
    check_encoders,
    check_files,
    check_texts,
)
from flows.cli.terminal.overrides import changes_of
from flows.cli.terminal.printing import TAKEN, print_table
from flows.cli.terminal.start import begin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flows.sweep.method_settings import FieldSettings


def field(
    texts: Annotated[tuple[str, ...], Parameter(help=TEXT_FORMS, required=True)],
    /,
    *,
    encoder: Annotated[str, Parameter(help=f"to start from: {ENCODER_FORMS}")] = "embedded:bert-mini",
    labels: Annotated[str | None, Parameter(help="file of texts with a class, or of scored pairs")] = None,
    budget: Annotated[
        str, Parameter(help="training of each method: seconds 90s, minutes 10m or steps 200steps")
    ] = "2m",
    methods: Annotated[
        str | None, Parameter(help="names separated by commas; a wrong name lists them [default: all]")
    ] = None,
    seeds: Annotated[int, Parameter(help="runs of each method, with training.seed 0, 1, …")] = 1,
    sentences: Annotated[int, Parameter(help="maximum number of training sentences")] = 20_000,
    teacher: Annotated[
        str | None, Parameter(help=f"of distillation: {ENCODER_FORMS} [default: by what --encoder can]")
    ] = None,
    translators: Annotated[Literal["embedded", "opus-mt"], Parameter(help="models of round trips")] = "embedded",
    settings: Changes = (),
    precision: AskedPrecision = None,
    reading: Reading = Reading(),
    place: Site = Site(),
    output: Output = Output(),
) -> int:
    """Try every method on your text, and say which to use."""
    check_texts(texts, place)
    check_files(labels)
    check_encoders([encoder, teacher], place)
    options = {"seeds": seeds, "sentences": sentences, "teacher": teacher, "translators": translators}
    asked = {"precision": precision} if precision else {}
    chosen = settings_of(budget, methods, {**options, **asked, **reading.given}, changes_of(settings))
    start = begin(place, output)
    from flows.sweep.field import field as trying
    from flows.sweep.field import located
    from tasks.embedding.encoders import check_there

    files, labelled = located(start.site, texts, labels, chosen)
    for name in filter(None, (encoder, chosen.teacher)):
        check_there(start.site, name)
    if not output.json:
        print_table(TAKEN, [source.told for source in files])
        if labelled is not None:
            print(printable(labelled.told))
    ref = start.run(trying, [], texts=list(texts), encoder=encoder, labels=labels, settings=chosen)
    if ref is None:
        return 1
    taken = [source.told for source in files]
    show_sweep(start.site.open_store(), ref, output, taken=taken, labels=labelled.told if labelled else None)
    return 0


def settings_of(budget: str, methods: str | None, options: Mapping[str, Any], changes: dict[str, Any]) -> FieldSettings:
    """Return the settings of a call.

    Args:
        budget: of each method, as `--budget` takes it.
        methods: names separated by commas; None for all.
        options: other settings by their names.
        changes: those of `--set`, nested; they win.

    Raises:
        ValueError: a method, a field or a value is not known.
    """
    from flows.config import override
    from flows.sweep.method_settings import FieldSettings, budget_of
    from flows.sweep.methods import methods_of

    names = methods.split(",") if methods else None
    methods_of(names)
    allowed = budget_of(budget).model_dump()
    if isinstance(own := changes.get("budget"), dict):
        # It is of seconds or of steps: the one that is set takes the place of the other.
        said = any(value is not None for value in own.values())
        changes["budget"] = (dict.fromkeys(allowed) if said else allowed) | own
    return override(FieldSettings(), {"budget": allowed, "methods": names, **options} | changes)
