"""Supervised semantic textual similarity: fine-tune an encoder on STS-B, one cached stage for each seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING

import polars as pl

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.views.annotated_pairs import graded_pairs
from bsl.storage.artifacts.refs import ScoresRef
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, ScoredSet, read_scored_set, resolve_scored_set
from bsl.tasks.evaluation.finetuning.finetune import CROSS, FineTuning, finetune, tuned_computation
from bsl.tasks.evaluation.kind import DRAWS_VERSION, TunedKind, digest_of, digests, publish_scores, with_signatures
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.cluster import run_shards

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bsl.models.training.config import TrainingConfig
    from bsl.tasks.evaluation.config import EvaluationSettings
    from bsl.tasks.evaluation.systems import NamedEncoder
    from bsl.tasks.stage.run_context import RunContext

SUPERVISED = "supervised"


class SupervisedPairs(EvaluationSet):
    """STS-B as a supervised task: train, dev (selects the epoch) and test split."""

    parts: tuple[ScoredSet, ScoredSet, ScoredSet]

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the pairs of each split: `subset`, `sentence1`, `sentence2`, `score`."""
        return {part.split: read_scored_set(part) for part in self.parts}


@dataclass(frozen=True)
class SupervisedStsKind(TunedKind[SupervisedPairs]):
    """Supervised STS-B, one stage for each seed; `name` is that of the protocol."""

    name: str
    training: Callable[[EvaluationSettings], TrainingConfig]

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the protocol."""
        return (self.name,)

    def find(self, site: RunContext, name: str) -> SupervisedPairs:
        """Find STS-B's three splits.

        Raises:
            SourceError: A split is not available.
        """
        train, dev, test = (resolve_scored_set(site, f"stsb/{split}") for split in ("train", "dev", "test"))
        return SupervisedPairs(dataset=name, parts=(train, dev, test))

    def scores(
        self, site: RunContext, candidate: NamedEncoder, sets: tuple[SupervisedPairs, ...], config: EvaluationSettings
    ) -> list[ScoresRef]:
        """Score an encoder; one artifact with means and standard deviations over the seeds."""
        tuning = FineTuning(encoder=candidate.encoder, network=candidate.config, config=self.training(config))
        calls = [
            (tuning, candidate.label, candidate.checkpoint, pairs.parts, seed, config.bootstrap)
            for pairs in sets
            for seed in range(config.seeds)
        ]
        runs = run_shards(site, score_supervised, calls)
        return [summarise_seeds(site, tuple(islice(runs, config.seeds))) for _ in sets]


@stage(ref=ScoresRef, version=5 + DRAWS_VERSION, uses_torch=True)
def score_supervised(
    context: StageContext,
    tuning: FineTuning,
    model: str,
    checkpoint: str,
    sets: tuple[ScoredSet, ScoredSet, ScoredSet],
    seed: int,
    bootstrap: BootstrapConfig,
) -> None:
    """Fine-tune on the train split, select the best epoch on the dev split, score the test split."""
    from bsl.models.evaluation.sts import sts_scores

    train, dev, test = sets
    pairs = graded_pairs(read_scored_set(train), train.highest)
    task = f"fine-tuning on {train.name}, seed {seed}"
    similarity = finetune(context, tuning.seeded(seed), pairs, task, read_scored_set(dev))
    scored = read_scored_set(test)
    rows = scored.select(subset=pl.lit(""), gold="score", cosine=pl.Series(similarity(scored)))
    figures = sts_scores(
        rows, dataset=test.dataset, split=test.split, resamples=bootstrap.resamples, seed=bootstrap.seed
    )
    protocol, by = (CROSS, "score") if tuning.config.objective.reads_pairs else (SUPERVISED, "cosine")
    supervised = pl.DataFrame([asdict(figure) for figure in figures]).with_columns(protocol=pl.lit(protocol))
    computation = tuned_computation(context, tuning, f"{train.name}:{digest_of(train)}+{dev.name}:{digest_of(dev)}")
    lines = with_signatures(supervised, digests(supervised, (test,)), computation, by=by)
    publish_scores(
        context, lines, model, checkpoint, seed, f"{model} fine-tuned on {train.name} ({protocol}), seed {seed}"
    )


@stage(ref=ScoresRef, version=2)
def summarise_seeds(context: StageContext, scores: tuple[ScoresRef, ...]) -> None:
    """Compute mean and standard deviation of every score over the seeds."""
    from bsl.models.evaluation.significance.seeds import over_seeds

    table = over_seeds(pl.concat([context.store.scan(ref).collect() for ref in scores]))
    model, checkpoint, seed = table.select("model", "checkpoint", "seed").row(0)  # the same in all rows
    publish_scores(context, table, model, checkpoint, seed, f"{len(scores)} seeds")
