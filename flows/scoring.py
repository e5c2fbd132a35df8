"""One encoder on every kind of set: one line an artifact."""

from pydantic import Field

from models.evaluation.config import (
    FOLDS_OF,
    BootstrapConfig,
    FinetuneConfig,
    ScoringConfig,
    afs_config,
    stsb_config,
)
from storage.refs import ComparisonRef, EmbeddingsRef, ScoresRef
from tasks.arguments import ArgumentFolds, ArgumentSet, predict_arguments, score_arguments, score_predictions
from tasks.candidates import Candidate, Reading
from tasks.labelled import LabelledSet
from tasks.probe import score_transfer
from tasks.resolve import EvaluationSet
from tasks.score import compare, score
from tasks.site import Site
from tasks.suites import scored_of
from tasks.supervised import SupervisedPairs, score_supervised, summarise_seeds


class EvaluationSettings(ScoringConfig):
    """How encoders are evaluated."""

    reading: Reading = Reading()
    """Pooling and length of bare transformers."""
    stsb: FinetuneConfig = Field(default_factory=stsb_config)
    """How an encoder is fine-tuned on STS-B."""
    afs: FinetuneConfig = Field(default_factory=afs_config)
    """How an encoder is fine-tuned on AFS."""
    seeds: int = Field(10, ge=2)
    """Runs of supervised STS-B, whose mean and standard deviation are given."""


def frozen_scores(
    site: Site,
    embeddings: EmbeddingsRef,
    one: Candidate,
    sets: tuple[EvaluationSet, ...],
    how: ScoringConfig,
) -> list[ScoresRef]:
    """What an encoder's vectors score as they are: an artifact for each kind of set."""
    made = []
    if scored := scored_of(sets):
        made.append(score(site, embeddings, one.label, one.checkpoint, scored, how.bootstrap))
    if labelled := tuple(each for each in sets if isinstance(each, LabelledSet)):
        made.append(score_transfer(site, embeddings, one.label, one.checkpoint, labelled, how.probe, how.bootstrap))
    made += [
        score_arguments(site, embeddings, one.label, one.checkpoint, each, how.bootstrap)
        for each in sets
        if isinstance(each, ArgumentSet)
    ]
    return made


def differences(
    site: Site,
    found: list[Candidate],
    embedded: list[EmbeddingsRef],
    sets: tuple[EvaluationSet, ...],
    bootstrap: BootstrapConfig,
) -> tuple[ComparisonRef, ...]:
    """Each encoder less the first, on the sets of scored pairs; none if there is no such set."""
    scored = scored_of(sets)
    others = list(zip(found, embedded, strict=True))[1:] if scored else []
    return tuple(
        compare(site, embedded[0], vectors, (found[0].label, one.label), scored, bootstrap) for one, vectors in others
    )


def tuned_scores(
    site: Site, one: Candidate, sets: tuple[EvaluationSet, ...], how: EvaluationSettings
) -> list[ScoresRef]:
    """What an encoder scores after fine-tuning: an artifact a seed or fold, and one for all of them."""
    made = []
    for each in sets:
        if isinstance(each, SupervisedPairs):
            runs = tuple(
                score_supervised(
                    site, one.encoder, one.label, one.checkpoint, each.parts, seed, one.config, how.stsb, how.bootstrap
                )
                for seed in range(how.seeds)
            )
            made.append(summarise_seeds(site, runs))
        if isinstance(each, ArgumentFolds):
            folds = tuple(
                predict_arguments(
                    site, one.encoder, each.arguments, each.protocol, fold, how.bootstrap.seed, one.config, how.afs
                )
                for fold in range(FOLDS_OF[each.protocol])
            )
            made.append(score_predictions(site, folds, each.protocol, one.label, one.checkpoint, how.bootstrap))
    return made
