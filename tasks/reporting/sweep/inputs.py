"""Settings of a sweep's comparison: sets, and the user's text."""

from __future__ import annotations

from pydantic import Field

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.sweep import MEAN
from bsl.storage.artifacts.refs import CorpusRef, PassagesRef, ReportRef
from bsl.storage.record import Record
from bsl.storage.sources.labels import LabelSource
from bsl.storage.sources.own_text import TextSource
from bsl.tasks.corpus.evaluation_sets import EvaluationSet
from bsl.tasks.reporting.sweep.system import SYSTEMS
from bsl.tasks.stage.cached import StageInputs


class OwnTextComparison(Record):
    """The user's text, which decides the best system; the original encoder is the first system."""

    passages: PassagesRef
    corpus: CorpusRef
    sources: tuple[TextSource, ...]
    labels: LabelSource | None
    """Labels; if given, they decide."""
    deciding: tuple[str, ...]
    """Names of the figures that decide, by their mean; all others are only reported."""
    checks: tuple[str, ...]
    """Names of general sets on which a system must not lose."""
    may_forget: float
    """Maximum drop on the checks."""
    reports: dict[str, ReportRef]
    """Label → report of the first run of a point."""

    @property
    def figure(self) -> str:
        """Name of the figure that decides."""
        return MEAN if len(self.deciding) > 1 else self.deciding[0]


class SweepSettings(StageInputs):
    """Sets, references, and content of the page that is in no artifact."""

    title: str
    config: BootstrapConfig
    """Bootstrap settings; many comparisons on `sets` get more draws (`enough_draws`)."""
    own_text: OwnTextComparison | None = None
    """The text that decides which system is advised; None without advice."""
    axis: str = SYSTEMS
    """Horizontal axis of the chart."""
    sets: dict[str, EvaluationSet] = Field(default_factory=dict)
    """Name → set to compare systems on, with intervals over seeds and questions."""
    others: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Dataset → its headline metrics, for sets without draws."""
    references: tuple[str, ...] = ()
    """Labels of the systems that all others are compared with. Labels without figures are skipped; if none remains, the
    first system with figures is used."""
    shown: str | None = None
    """Set that the chart draws, by its declared name; the mean of all if None."""
    aside: tuple[str, ...] = ()
    """Names of figures that are reported only and in no mean: those of sets that selected an encoder."""
    runs: tuple[ReportRef, ...] = ()
    """Reports of the systems, if they are results of finished runs."""
    notes: tuple[str, ...] = ()

    def decides(self, name: str) -> bool:
        """Return whether a figure decides."""
        return name not in self.aside if self.own_text is None else name in self.own_text.deciding
