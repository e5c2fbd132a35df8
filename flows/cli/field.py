"""`bsl field TEXT…`: compare training methods on the user's text, with one budget per method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from flows.cli.sweep import show_sweep
from flows.cli.terminal.options import (
    ENCODER_FORMS,
    TEXT_FORMS,
    Output,
    Reading,
    Settings,
    Site,
    check_amount,
    check_encoders,
    check_files,
    check_texts,
)
from flows.cli.terminal.printing import print_sources
from flows.cli.terminal.start import begin

if TYPE_CHECKING:
    from flows.sweep.method_settings import FieldSettings


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Trial:
    """Methods to try, and their budget."""

    budget: Annotated[str, Parameter(help="training budget of each method: for example 90s, 10m or 200steps")] = "2m"
    methods: Annotated[
        str | None, Parameter(help="names separated by commas; an unknown name lists all methods [default: all]")
    ] = None
    seeds: Annotated[int, Parameter(help="runs of each method, with training.seed 0, 1, …")] = 1
    sentences: Annotated[int, Parameter(help="maximum number of training sentences")] = 20_000
    teacher: Annotated[
        str | None,
        Parameter(help=f"teacher of distillation: {ENCODER_FORMS} [default: automatic]"),
    ] = None
    translators: Annotated[Literal["embedded", "opus-mt"], Parameter(help="translators of round trips")] = "embedded"
    settings: Settings = Settings()

    def configured(self, reading: Reading) -> FieldSettings:
        """Return the settings; `--set` overrides the other options.

        Raises:
            ValueError: A method, field or value is invalid.
        """
        from flows.config import override
        from flows.sweep.method_settings import FieldSettings, budget_of
        from flows.sweep.methods import methods_of

        names = self.methods.split(",") if self.methods else None
        methods_of(names)  # an unknown name raises here
        changes = self.settings.changes()
        by_option, budget = budget_of(self.budget).model_dump(), changes.get("budget", {})
        if isinstance(budget, dict):
            # A budget has either seconds or steps, so a value of --set replaces the value of --budget.
            is_changed = any(value is not None for value in budget.values())
            budget = (dict.fromkeys(by_option) if is_changed else by_option) | budget
        options = {
            "methods": names,
            "seeds": self.seeds,
            "sentences": self.sentences,
            "teacher": self.teacher,
            "translators": self.translators,
            **({"precision": self.settings.precision} if self.settings.precision else {}),
        }
        return override(FieldSettings(), {**options, **reading.given, **changes, "budget": budget})


def field(
    texts: Annotated[tuple[str, ...], Parameter(help=TEXT_FORMS, required=True)],
    /,
    *,
    encoder: Annotated[str, Parameter(help=f"original encoder: {ENCODER_FORMS}")] = "embedded:bert-mini",
    labels: Annotated[str | None, Parameter(help="file of texts with a class, or of scored pairs")] = None,
    trial: Trial = Trial(),
    reading: Reading = Reading(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Try all methods on your text, and report which method to use."""
    check_texts(texts, place)
    check_files(labels)
    check_encoders([encoder, trial.teacher], place)
    chosen = trial.configured(reading)
    check_amount(texts, chosen)
    start = begin(place, output)
    from flows.sweep.field import field as field_flow

    details = print_sources(chosen.sources(texts, start.site.mirror), labels, output)
    ref = start.run(field_flow, [], texts=list(texts), encoder=encoder, labels=labels, settings=chosen)
    show_sweep(start.site.open_store(), ref, output, **details)
