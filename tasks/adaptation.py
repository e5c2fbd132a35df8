"""Adaptation stages: choose how much training to merge into the encoder, and evaluate on held-out text and labels."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.uses import UseName
from bsl.storage.artifacts.refs import (
    ENCODER,
    ArtifactRef,
    CheckpointRef,
    CorpusRef,
    EmbeddingsRef,
    ProofRef,
    ScoresRef,
)
from bsl.storage.artifacts.schemas import PROOF, WEIGHING
from bsl.storage.filesystem.names import MANIFEST
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, ScoredSet, in_full, read_scored_set
from bsl.tasks.embedding.encoders import encoder_folder, load_encoder
from bsl.tasks.embedding.vectors import open_vectors
from bsl.tasks.evaluation.comparison import paired_draws
from bsl.tasks.evaluation.kind import DRAWS_VERSION
from bsl.tasks.evaluation.kinds import kind_of
from bsl.tasks.evaluation.own_text import HeldOutSet, most_frequent_share, questions_like
from bsl.tasks.evaluation.samples import samples_of
from bsl.tasks.figures import ExportFigures, LengthFigures, ProofFigures, ShareFigures, ToLabelFigures
from bsl.tasks.rendering.blocks import Prose, Table
from bsl.tasks.rendering.evidence import answer_blocks, proof_rows, share_tables
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.ui import progress_of, show

if TYPE_CHECKING:
    from bsl.models.encoder.sentence_encoder import CachedEncoder
    from bsl.models.evaluation.proof import AdaptationComparison


@stage(ref=ArtifactRef, kind="weighing", version=11, uses_torch=True)
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
    from bsl.models.encoder.sentence_encoder import CachedEncoder
    from bsl.models.evaluation.significance.paired import forgets

    descending, scores = sorted(shares, reverse=True), dict[float, float]()
    chosen = descending[0]
    if dev is not None and len(descending) > 1:
        progress = progress_of("choosing the share, shares")
        first, last = (load_encoder(context.store, ref, encoder) for ref in (start, trained))
        for done, share in enumerate([0.0, *descending]):
            scores[share] = _spearman(CachedEncoder(first.merged(last, share), device=device_of(context.site)), dev)
            chosen = share
            # Half the maximum loss is allowed, because the general dev set has sampling error.
            is_last = share > 0 and not forgets(scores[share] - scores[0.0], max_forgetting / 100 / 2)
            progress(done + 1, done + 1 if is_last else len(descending) + 1, f"share {share:g}")
            if is_last:
                break
    weighing = pl.DataFrame([*scores.items()], schema=WEIGHING, orient="row")
    context.draft.write(weighing)
    context.draft.note(ShareFigures(share=chosen))
    show(*share_tables(weighing))


@stage(ref=CheckpointRef, version=3, uses_torch=True)
def merge(
    context: StageContext,
    start: CheckpointRef | ResolvedModel,
    trained: CheckpointRef,
    weighing: ArtifactRef,
    encoder: EncoderConfig,
) -> None:
    """Merge the original and the trained encoder at the chosen share."""
    share = context.store.manifest(weighing).figures_as(ShareFigures).share
    first, last = (load_encoder(context.store, ref, encoder) for ref in (start, trained))
    result = first.merged(last, share)
    result.save(context.draft.folder / ENCODER)
    context.draft.note(ShareFigures(share=share))
    context.draft.note(LengthFigures(max_length=result.config.length))


@stage(ref=ProofRef, version=26 + DRAWS_VERSION, uses_torch=True)
def evaluate_adaptation(
    context: StageContext,
    vectors: tuple[EmbeddingsRef, EmbeddingsRef],
    adapted: CheckpointRef,
    sets: dict[str, EvaluationSet],
    undrawn: tuple[ScoresRef, ...],
    config: BootstrapConfig,
    max_forgetting: float,
    deciding: UseName | None,
    views: tuple[str, ...],
    to_label: CorpusRef | None,
) -> None:
    """Compare the original and the adapted encoder on held-out text, labels and general sets, and reach a verdict.

    `vectors` are those of the original and of the adapted encoder; `undrawn` are scores of both on the sets without
    draws, the same sets in the same order. A general set with draws may lose `max_forgetting` points. Without labels,
    `to_label` are the texts that the user may label.
    """
    from bsl.models.evaluation.proof import adaptation_comparisons
    from bsl.models.evaluation.verdict import adaptation_verdict

    drawn = paired_draws(context.store, vectors, sets, config)
    rows = [*adaptation_comparisons(drawn, deciding, questions_like(views)), *_undrawn(context, undrawn)]
    share = context.store.manifest(adapted).figures_as(ShareFigures).share
    smaller = f"'proof.shares=[{share / 2:g}]'" if "labels" in views else f"proof.share={share / 2:g}"
    texts = None if to_label is None else context.store.manifest(to_label).figures_as(ToLabelFigures).rows
    verdict = adaptation_verdict(rows, max_forgetting, smaller, most_frequent_share(sets), texts)
    unused = "" if verdict.word == "BETTER" else f" The adapted encoder is checkpoint/{adapted.key[:12]}."
    table = pl.DataFrame([asdict(row) for row in rows], schema=PROOF).fill_nan(None)
    context.draft.write(table)
    before, after = (open_vectors(context.store, one) for one in vectors)
    changed = [samples_of(text, before, after) for text in sets.values() if isinstance(text, HeldOutSet)]
    context.draft.write_all(changed, "samples")
    context.draft.note(
        ProofFigures(
            verdict=verdict.word,
            verdict_for=verdict.use,
            reason=verdict.reason,
            advice=verdict.advice + unused,
            used_for=deciding,
            uses=[{**asdict(row), "answer": row.answer} for row in rows if row.use],
            draws=config.resamples,
        )
    )
    show(
        Prose(verdict.finding),
        *answer_blocks(table, config.resamples),
        Table.of("Figures × 100", proof_rows(table, config.resamples)),
    )


@stage(ref=CheckpointRef, version=3)
def choose_encoder(
    context: StageContext,
    start: CheckpointRef | ResolvedModel,
    adapted: CheckpointRef,
    proof: ProofRef,
    *,
    accept: bool = False,
) -> None:
    """Publish the final encoder: the adapted one if its verdict is BETTER, else the original files, unchanged.

    With `accept`, the adapted encoder is also published if nothing is proved.
    """
    word = context.store.manifest(proof).figures_as(ProofFigures).verdict
    better = word == "BETTER" or (accept and word == "NOT PROVED")
    # An embedded model's folder contains a manifest, which would be wrong for this artifact.
    ignored = shutil.ignore_patterns(MANIFEST, ".*")
    folder = encoder_folder(context.store, adapted if better else start)
    shutil.copytree(folder, context.draft.folder / ENCODER, ignore=ignored)
    context.draft.note(ExportFigures(adapted=better))


def _undrawn(context: StageContext, scores: tuple[ScoresRef, ...]) -> list[AdaptationComparison]:
    """Return both encoders' scores on sets without draws; the first half of `scores` is of the original encoder."""
    from bsl.models.evaluation.proof import comparisons_without_draws

    if not scores:
        return []
    tables, half = [context.store.scan(ref).collect() for ref in scores], len(scores) // 2
    before, after = pl.concat(tables[:half]), pl.concat(tables[half:])
    headlines = {name: kind_of(in_full(name)).headline for name in before["dataset"].unique()}
    return comparisons_without_draws(before, after, headlines)


def _spearman(encode: CachedEncoder, dev: ScoredSet) -> float:
    from bsl.models.evaluation.correlation import cosine_scores, spearman

    rows = read_scored_set(dev)
    first, second = (encode(rows[side].to_list()) for side in ("sentence1", "sentence2"))
    return spearman(cosine_scores(first, second), rows["score"].to_numpy())
