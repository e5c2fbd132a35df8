"""Settings of a sweep's comparison: sets, or the user's text."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from models.evaluation.config import BootstrapConfig
from models.evaluation.sweep import enough_draws
from storage.artifacts.refs import CorpusRef, ReportRef
from storage.record import Record
from storage.sources.own_text import SET_PREFIX, TextSource
from tasks.corpus.evaluation_sets import EvaluationSet, ScoredSet
from tasks.evaluation.own_text import HeldOutSet
from tasks.reporting.sweep.system import SYSTEMS
from tasks.stage.cached import StageInputs

_CHECKS_SEED: Final = 200  # draws independent of those of questions and labels


class OwnTextComparison(Record):
    """The user's text, which decides the best system."""

    held_out: HeldOutSet
    """The held-out text, and labels."""
    corpus: CorpusRef
    """Training sentences."""
    checks: tuple[ScoredSet, ...]
    """Scored pairs on which a system must not lose."""
    may_forget: float
    """Maximum drop on the checks."""
    sources: tuple[TextSource, ...]
    """The files."""

    @property
    def compared(self) -> list[tuple[str, EvaluationSet, int]]:
        """The text and the checks, as in `SweepSettings.compared`."""
        checks = enumerate(self.checks, start=_CHECKS_SEED)
        names = ((f"{check.dataset}/{check.split}", check, seed) for seed, check in checks)
        return [(f"{SET_PREFIX}{self.held_out.dataset}", self.held_out, 0), *names]


class SweepSettings(StageInputs):
    """Sets, references, and content of the page that is in no artifact."""

    title: str
    """Title of the page."""
    config: BootstrapConfig
    """Bootstrap settings; many comparisons on `sets` get more draws (`enough_draws`)."""
    own_text: OwnTextComparison | None = None
    """The text that decides; None if `sets` are compared."""
    axis: str = SYSTEMS
    """Horizontal axis of the chart."""
    sets: dict[str, EvaluationSet] = Field(default_factory=dict)
    """Name → set to compare systems on, by the hierarchical bootstrap over seeds and questions."""
    others: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Dataset → its headline metrics, for sets without draws."""
    references: tuple[str, ...] = ()
    """Labels of the systems that all others are compared with. Labels without figures are skipped; if none remains, the
    first system with figures is used."""
    shown: str | None = None
    """Set that the chart draws, by its declared name; the mean of all if None."""
    aside: tuple[str, ...] = ()
    """Names of figures that are reported only and in no mean: those of sets that selected an encoder, of checks, and of
    questions that do not decide."""
    runs: tuple[ReportRef, ...] = ()
    """Reports of the systems, if they are results of finished runs."""
    notes: tuple[str, ...] = ()
    """Notes on the page."""
    settings: str = ""
    """All settings as JSON; empty if recipes contain them."""

    @property
    def compared(self) -> list[tuple[str, EvaluationSet, int]]:
        """Name, set and seed offset of each comparison; sets have independent draws, since figures are averaged."""
        if self.own_text is not None:
            return self.own_text.compared
        return [(name, evaluation_set, number) for number, (name, evaluation_set) in enumerate(self.sets.items())]

    def resamples(self, comparisons: int) -> int:
        """Return the number of draws; the settings of own text have enough for all pairs of systems."""
        return enough_draws(self.config.resamples, comparisons) if self.own_text is None else self.config.resamples
