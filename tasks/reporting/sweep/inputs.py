"""Settings of a sweep's comparison: sets, or the user's text."""

from __future__ import annotations

from pydantic import Field

from models.evaluation.config import BootstrapConfig
from storage.artifacts.refs import CorpusRef
from storage.record import Record
from storage.sources.own_text import TextSource
from tasks.corpus.evaluation_sets import EvaluationSet, ScoredSet
from tasks.evaluation.own_text import HeldOutSet
from tasks.reporting.sweep.system import SYSTEMS
from tasks.stage.cached import StageInputs


class OwnTextComparison(Record):
    """The user's text, which decides the best system."""

    held_out: HeldOutSet
    """The held-out text, and labels."""
    corpus: CorpusRef
    """Training sentences."""
    learnt_views: tuple[str, ...]
    """Questions made in the same way as a system's training views; shown, but not decisive."""
    checks: tuple[ScoredSet, ...]
    """Scored pairs on which a system must not lose."""
    may_forget: float
    """Maximum drop on the checks."""
    sources: tuple[TextSource, ...]
    """The files."""


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
    """Labels of the systems that all others are compared with. Those without figures are left out; the first system
    with figures is used if none is left."""
    shown: str | None = None
    """Set that the chart draws, by its declared name; the mean of all if None."""
    notes: tuple[str, ...] = ()
    """Notes on the page."""
    settings: str = ""
    """All settings as JSON; empty if recipes contain them."""
