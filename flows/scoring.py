"""Systems on every kind of set: whatever made the vectors, one line an artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.embed import embed
from tasks.embed_tfidf import TITLE, embed_tfidf
from tasks.evaluation.systems import Candidate, System
from tasks.transform import fit_transform, transform

if TYPE_CHECKING:
    from models.baselines.config import TransformConfig
    from models.evaluation.config import Precision, ScoringConfig
    from storage.refs import ComparisonRef, CorpusRef, ScoresRef
    from tasks.evaluation.kinds import FoundSets
    from tasks.evaluation.settings import EvaluationSettings
    from tasks.settings import RunSettings
    from tasks.site import Site


def encoder_system(site: Site, candidate: Candidate, found: FoundSets, precision: Precision) -> System:
    """An encoder's own vectors."""
    vectors = embed(site, candidate.encoder, found.embedded(), candidate.config, precision)
    return System(candidate.label, candidate.checkpoint, vectors)


def run_systems(
    site: Site, corpus: CorpusRef, candidates: list[Candidate], found: FoundSets, config: RunSettings
) -> list[System]:
    """What a run is reported on: TF-IDF, its encoders, and these again after the transform if there is one."""
    precision, posthoc = config.evaluation.precision, config.transform
    encoders = [encoder_system(site, candidate, found, precision) for candidate in candidates]
    transformed = [
        transformed_system(site, candidate, system, corpus, posthoc, precision)
        for candidate, system in zip(candidates, encoders, strict=True)
        if posthoc
    ]
    return [tfidf_system(site, corpus, found), *encoders, *transformed]


def transformed_system(
    site: Site, candidate: Candidate, system: System, corpus: CorpusRef, config: TransformConfig, precision: Precision
) -> System:
    """An encoder's vectors after a transform that is fitted on those of a corpus."""
    fitted = fit_transform(site, embed(site, candidate.encoder, corpus, candidate.config, precision), config)
    vectors = transform(site, system.embeddings, fitted)
    return System(f"{system.label} + {config.name}", system.checkpoint, vectors)


def tfidf_system(site: Site, corpus: CorpusRef, found: FoundSets) -> System:
    """The baseline that knows a corpus's words alone."""
    return System(TITLE, "", embed_tfidf(site, corpus, found.embedded()))


def frozen_scores(site: Site, system: System, found: FoundSets, config: ScoringConfig) -> list[ScoresRef]:
    """What vectors score as they are."""
    return [scores for kind, sets in found.frozen() for scores in kind.scores(site, system, sets, config)]


def differences(
    site: Site, first: System, others: list[System], found: FoundSets, config: ScoringConfig
) -> tuple[ComparisonRef, ...]:
    """Each of the others less the first, on the kinds of set that can tell."""
    return tuple(
        comparison
        for other in others
        for kind, sets in found.frozen()
        for comparison in kind.compare(site, first, other, sets, config)
    )


def tuned_scores(
    site: Site, candidates: list[Candidate], found: FoundSets, config: EvaluationSettings
) -> list[ScoresRef]:
    """What encoders score after fine-tuning, one by one."""
    return [
        scores
        for candidate in candidates
        for kind, sets in found.tuned()
        for scores in kind.scores(site, candidate, sets, config)
    ]
