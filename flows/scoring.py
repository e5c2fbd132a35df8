"""Systems on every kind of set: whatever made the vectors, one line an artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.posthoc import posthoc_systems
from flows.precision import computed
from tasks.embedding.embed import embed
from tasks.embedding.tfidf import TITLE, embed_tfidf
from tasks.evaluation.systems import Candidate, System

if TYPE_CHECKING:
    from models.evaluation.config import ScoringConfig
    from models.precision import Computed
    from storage.artifacts.refs import ComparisonRef, CorpusRef, ScoresRef
    from tasks.evaluation.kinds import FoundSets
    from tasks.evaluation.settings import EvaluationSettings
    from tasks.settings import RunSettings
    from tasks.stage.run_context import RunContext


def encoder_system(site: RunContext, candidate: Candidate, found: FoundSets, precision: Computed) -> System:
    """An encoder's own vectors."""
    vectors = embed(site, candidate.encoder, found.embedded(), candidate.config, precision)
    return System(candidate.label, candidate.checkpoint, vectors)


def run_systems(
    site: RunContext, corpus: CorpusRef, candidates: list[Candidate], found: FoundSets, config: RunSettings
) -> list[System]:
    """What a run is reported on: TF-IDF, its encoders, and these again after the transform if there is one."""
    precision = computed(config.evaluation.precision, site)
    encoders = [encoder_system(site, candidate, found, precision) for candidate in candidates]
    transformed = [
        after
        for candidate, system in zip(candidates, encoders, strict=True)
        for after in posthoc_systems(site, candidate, system, corpus, found, config)
    ]
    return [tfidf_system(site, corpus, found), *encoders, *transformed]


def tfidf_system(site: RunContext, corpus: CorpusRef, found: FoundSets) -> System:
    """The baseline that knows a corpus's words alone."""
    return System(TITLE, "", embed_tfidf(site, corpus, found.embedded()))


def frozen_scores(site: RunContext, system: System, found: FoundSets, config: ScoringConfig) -> list[ScoresRef]:
    """What vectors score as they are."""
    return [
        scores
        for kind, sets in found.frozen()
        if (own := system.of(sets))
        for scores in kind.scores(site, system, own, config)
    ]


def differences(
    site: RunContext, first: System, others: list[System], found: FoundSets, config: ScoringConfig
) -> tuple[ComparisonRef, ...]:
    """Each of the others less the first, on the kinds of set that can tell."""
    return tuple(
        comparison
        for other in others
        for kind, sets in found.frozen()
        if (own := other.of(sets))
        for comparison in kind.compare(site, first, other, own, config)
    )


def tuned_scores(
    site: RunContext, candidates: list[Candidate], found: FoundSets, config: EvaluationSettings
) -> list[ScoresRef]:
    """What encoders score after fine-tuning, one by one."""
    return [
        scores
        for candidate in candidates
        for kind, sets in found.tuned()
        for scores in kind.scores(site, candidate, sets, config)
    ]
