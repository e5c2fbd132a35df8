"""`bsl field TEXT…`: compare training methods on the user's text, with one budget per method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Trial:
    """Methods to try, and their budget."""

    budget: Annotated[str, Parameter(help="training of each method: seconds 90s, minutes 10m or steps 200steps")] = "2m"
    methods: Annotated[
        str | None, Parameter(help="names separated by commas; a wrong name lists them [default: all]")
    ] = None
    seeds: Annotated[int, Parameter(help="runs of each method, with training.seed 0, 1, …")] = 1
    sentences: Annotated[int, Parameter(help="maximum number of training sentences")] = 20_000
    teacher: Annotated[
        str | None, Parameter(help=f"of distillation: {ENCODER_FORMS} [default: by what --encoder can]")
    ] = None
    translators: Annotated[Literal["embedded", "opus-mt"], Parameter(help="models of round trips")] = "embedded"

    def settings(self, changes: Mapping[str, Any]) -> FieldSettings:
        """Return the settings of a call.

        Args:
            changes: changes by other options and `--set`, nested; they take precedence.

        Raises:
            ValueError: unknown method, field or value.
        """
        from flows.config import override
        from flows.sweep.method_settings import FieldSettings, budget_of
        from flows.sweep.methods import methods_of

        names = self.methods.split(",") if self.methods else None
        methods_of(names)
        allowed, budget = budget_of(self.budget).model_dump(), changes.get("budget", {})
        if isinstance(budget, dict):
            # A budget has either seconds or steps, so a value by --set replaces the other one.
            is_changed = any(value is not None for value in budget.values())
            budget = (dict.fromkeys(allowed) if is_changed else allowed) | budget
        return override(FieldSettings(), {**asdict(self), "methods": names, **changes, "budget": budget})


def field(
    texts: Annotated[tuple[str, ...], Parameter(help=TEXT_FORMS, required=True)],
    /,
    *,
    encoder: Annotated[str, Parameter(help=f"to start from: {ENCODER_FORMS}")] = "embedded:bert-mini",
    labels: Annotated[str | None, Parameter(help="file of texts with a class, or of scored pairs")] = None,
    trial: Trial = Trial(),
    settings: Changes = (),
    precision: AskedPrecision = None,
    reading: Reading = Reading(),
    place: Site = Site(),
    output: Output = Output(),
) -> int:
    """Try every method on your text, and say which to use."""
    check_texts(texts, place)
    check_files(labels)
    check_encoders([encoder, trial.teacher], place)
    asked = {"precision": precision} if precision else {}
    chosen = trial.settings({**asked, **reading.given, **changes_of(settings)})
    start = begin(place, output)
    from flows.sweep.field import field as trying
    from storage.sources.labels import label_source

    taken = [source.summary for source in chosen.sources(texts, start.site.mirror)]
    labelled = label_source(labels).summary if labels else None
    if not output.json:
        print_table(TAKEN, taken)
        if labelled is not None:
            print(printable(labelled))
    ref = start.run(trying, [], texts=list(texts), encoder=encoder, labels=labels, settings=chosen)
    if ref is None:
        return 1
    show_sweep(start.site.open_store(), ref, output, taken=taken, labels=labelled)
    return 0
