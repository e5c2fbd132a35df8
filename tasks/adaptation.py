"""Adaptation stages: choose how much training to merge into the encoder, and evaluate on held-out text and labels."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from models.encoder.config import EncoderConfig
from models.evaluation.config import BootstrapConfig
from storage.artifacts.refs import ENCODER, CheckpointRef, EmbeddingsRef, ProofRef, ScoresRef, WeighingRef
from storage.artifacts.schemas import PROOF, WEIGHING
from storage.filesystem.names import MANIFEST
from storage.sources.model_sources import ResolvedModel
from tasks.corpus.evaluation_sets import EvaluationSet, ScoredSet, in_full, read_scored_set
from tasks.embedding.encoders import encoder_folder
from tasks.evaluation.comparison import paired_draws
from tasks.evaluation.kinds import kind_of
from tasks.rendering.evidence import weighed
from tasks.stage.cached import StageContext, stage
from tasks.stage.device import device_of, limit_threads
from tasks.stage.ui import progress_of, show_table

if TYPE_CHECKING:
    from models.encoder.sentence_encoder import CachedEncoder, SentenceEncoder
    from models.evaluation.proof import BeforeAfter

SHARE, VERDICT = "share", "verdict"
"""Figures of a weighing; of a proof."""


@stage(ref=WeighingRef, version=11)
def choose_share(
    context: StageContext,
    start: CheckpointRef | ResolvedModel,
    trained: CheckpointRef,
    dev: ScoredSet | None,
    shares: tuple[float, ...],
    max_forgetting: float,
    encoder: EncoderConfig,
) -> None:
    """Choose the largest share of the trained weights with which a general dev set does not lose too much.

    If all shares lose too much, the smallest is chosen. A single share is chosen without scoring, and so is the largest
    share without a dev set.
    """
    from models.evaluation.significance.paired import forgets

    descending, scores = sorted(shares, reverse=True), dict[float, float]()
    chosen = descending[0]
    if dev is not None and len(descending) > 1:
        progress = progress_of("choosing the share, shares")
        first, last = (_loaded(context, ref, encoder) for ref in (start, trained))
        for done, share in enumerate([0.0, *descending]):
            scores[share] = _spearman(_cached(context, first.merged(last, share)), dev)
            chosen = share
            # Half the maximum loss is allowed, because the general dev set has sampling error.
            is_last = share > 0 and not forgets(scores[share] - scores[0.0], max_forgetting / 100 / 2)
            progress(done + 1, done + 1 if is_last else len(descending) + 1, f"share {share:g}")
            if is_last:
                break
    context.draft.write(pl.DataFrame([*scores.items()], schema=WEIGHING, orient="row"))
    context.draft.note({SHARE: chosen})
    if scores:
        show_table(weighed(scores.items()), "General dev set × 100 by share of the trained weights")


@stage(ref=CheckpointRef, version=2)
def merge(
    context: StageContext,
    start: CheckpointRef | ResolvedModel,
    trained: CheckpointRef,
    weighing: WeighingRef,
    encoder: EncoderConfig,
) -> None:
    """Merge the original and the trained encoder at the chosen share."""
    share = float(str(context.store.manifest(weighing).figures[SHARE]))
    result = _loaded(context, start, encoder).merged(_loaded(context, trained, encoder), share)
    result.save(context.draft.folder / ENCODER)
    context.draft.note({SHARE: share, "max_length": result.config.length})


@stage(ref=ProofRef, version=20)
def evaluate_adaptation(
    context: StageContext,
    vectors: tuple[EmbeddingsRef, EmbeddingsRef],
    adapted: CheckpointRef,
    sets: dict[str, EvaluationSet],
    undrawn: tuple[ScoresRef, ...],
    config: BootstrapConfig,
    max_forgetting: float,
) -> None:
    """Compare the original and the adapted encoder on held-out text, labels and general sets, and reach a verdict.

    Args:
        context: the stage's context.
        vectors: vectors of the original and of the adapted encoder.
        adapted: the adapted encoder.
        sets: the sets with draws, by name.
        undrawn: scores of both encoders on the other sets, the same sets in the same order.
        config: number and seed of the draws.
        max_forgetting: points that a general set with draws may lose.
    """
    from models.evaluation.proof import evidence
    from models.evaluation.verdict import judged
    from tasks.rendering.evidence import proof_rows

    limit_threads(context.site)
    rows = [*evidence(paired_draws(context.store, vectors, sets, config)), *_undrawn(context, undrawn)]
    verdict = judged(rows, max_forgetting)
    unused = "" if verdict.word == "BETTER" else f" The adapted encoder is checkpoint/{adapted.key[:12]}."
    table = pl.DataFrame([asdict(row) for row in rows], schema=PROOF).fill_nan(None)
    context.draft.write(table)
    context.draft.note({VERDICT: verdict.word, "reason": verdict.reason, "advice": verdict.advice + unused})
    show_table(proof_rows(table), f"{verdict.word}: {verdict.reason}")


@stage(ref=CheckpointRef, version=2)
def choose_encoder(
    context: StageContext,
    start: CheckpointRef | ResolvedModel,
    adapted: CheckpointRef,
    proof: ProofRef,
) -> None:
    """Publish the final encoder: the adapted one if its verdict is BETTER, else the original files, unchanged."""
    better = context.store.manifest(proof).figures[VERDICT] == "BETTER"
    # An embedded model's folder contains a manifest, which would be wrong for this artifact.
    ignored = shutil.ignore_patterns(MANIFEST, ".*")
    folder = encoder_folder(context.store, adapted if better else start)
    shutil.copytree(folder, context.draft.folder / ENCODER, ignore=ignored)
    context.draft.note({"adapted": better})


def _undrawn(context: StageContext, scores: tuple[ScoresRef, ...]) -> list[BeforeAfter]:
    """Return both encoders' scores on sets without draws; the first half of `scores` is of the original encoder."""
    from models.evaluation.proof import undrawn_evidence

    if not scores:
        return []
    tables, half = [context.store.scan(ref).collect() for ref in scores], len(scores) // 2
    before, after = pl.concat(tables[:half]), pl.concat(tables[half:])
    headlines = {name: kind_of(in_full(name)).headline for name in before["dataset"].unique()}
    return undrawn_evidence(before, after, headlines)


def _loaded(context: StageContext, ref: CheckpointRef | ResolvedModel, config: EncoderConfig) -> SentenceEncoder:
    from models.encoder.sentence_encoder import SentenceEncoder

    limit_threads(context.site)
    return SentenceEncoder.load(encoder_folder(context.store, ref), config)


def _cached(context: StageContext, encoder: SentenceEncoder) -> CachedEncoder:
    from models.encoder.sentence_encoder import CachedEncoder

    return CachedEncoder(encoder, device=device_of(context.site))


def _spearman(encode: CachedEncoder, dev: ScoredSet) -> float:
    from models.evaluation.correlation import cosine_scores, spearman

    rows = read_scored_set(dev)
    first, second = (encode(rows[side].to_list()) for side in ("sentence1", "sentence2"))
    return spearman(cosine_scores(first, second), rows["score"].to_numpy())
