"""One encoder on every kind of set: one line an artifact."""

from pydantic import Field

from models.evaluation.bootstrap import BootstrapConfig
from models.evaluation.config import FOLDS_OF, ScoringConfig
from models.training.config import TrainingConfig, afs_config, stsb_config
from storage.refs import ComparisonRef, EmbeddingsRef, ScoresRef
from tasks.evaluation.afs import AfsFolds, AfsSet, predict_afs, score_afs, score_afs_predictions
from tasks.evaluation.candidates import Candidate, Reading
from tasks.evaluation.kinds import scored_of
from tasks.evaluation.sets import EvaluationSet
from tasks.evaluation.sts import compare, score
from tasks.evaluation.supervised import SupervisedPairs, score_supervised, summarise_seeds
from tasks.evaluation.transfer import TransferSet, score_transfer
from tasks.site import Site


class EvaluationSettings(ScoringConfig):
    """How encoders are evaluated."""

    reading: Reading = Reading()
    """Pooling and length of bare transformers."""
    stsb: TrainingConfig = Field(default_factory=stsb_config)
    """How an encoder is fine-tuned on STS-B."""
    afs: TrainingConfig = Field(default_factory=afs_config)
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
    if labelled := tuple(each for each in sets if isinstance(each, TransferSet)):
        made.append(score_transfer(site, embeddings, one.label, one.checkpoint, labelled, how.probe, how.bootstrap))
    made += [
        score_afs(site, embeddings, one.label, one.checkpoint, each, how.bootstrap)
        for each in sets
        if isinstance(each, AfsSet)
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
        if isinstance(each, AfsFolds):
            folds = tuple(
                predict_afs(
                    site, one.encoder, each.arguments, each.protocol, fold, how.bootstrap.seed, one.config, how.afs
                )
                for fold in range(FOLDS_OF[each.protocol])
            )
            made.append(score_afs_predictions(site, folds, each.protocol, one.label, one.checkpoint, how.bootstrap))
    return made
