"""Adaptation stages: choose how much training to merge into the encoder, and evaluate on held-out text and labels."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from models.corpus.labels import Use
from models.encoder.config import EncoderConfig
from models.evaluation.proof import AdaptationEvaluationConfig
from storage.artifacts.refs import (
    ENCODER,
    CheckpointRef,
    ComparisonRef,
    PassagesRef,
    ProofRef,
    ScoresRef,
    WeighingRef,
)
from storage.artifacts.schemas import PROOF, WEIGHING
from storage.filesystem.names import MANIFEST
from storage.sources.labels import LabelSource
from storage.sources.model_sources import ResolvedModel
from tasks.corpus.evaluation_sets import ScoredSet, in_full, read_scored_set
from tasks.corpus.labels import evaluation_labels
from tasks.embedding.encoders import encoder_folder
from tasks.evaluation.kinds import kind_of
from tasks.rendering.evidence import weighed
from tasks.stage.cached import StageContext, StageInputs, stage
from tasks.stage.device import device_of, limit_threads
from tasks.stage.progress import announce
from tasks.stage.ui import progress_of, show_table

if TYPE_CHECKING:
    from models.encoder.merging import Encode
    from models.encoder.sentence_encoder import CachedEncoder, SentenceEncoder
    from models.evaluation.proof import Questions
    from tasks.stage.run_context import RunContext

REPORT = "report"
"""Part of held-out text."""
SHARE, VERDICT = "share", "verdict"
"""Figures of a weighing; of a proof."""


class HeldOut(StageInputs):
    """Held-out text and labels, with their use and the evaluation settings."""

    passages: PassagesRef
    """Sentences of the text, by part."""
    labels: LabelSource | None
    """Labels, if any."""
    use: Use
    """Use of the labels."""
    config: AdaptationEvaluationConfig
    """Number of questions, bounds."""


@stage(ref=WeighingRef, version=10)
def weigh(
    work: StageContext,
    start: CheckpointRef | ResolvedModel,
    trained: CheckpointRef,
    dev: ScoredSet | None,
    shares: tuple[float, ...],
    config: AdaptationEvaluationConfig,
    encoder: EncoderConfig,
) -> None:
    """Choose the largest share of the trained weights with which a general dev set does not lose too much.

    If all shares lose too much, the smallest is chosen. A single share is chosen without scoring, and so is the largest
    share without a dev set.
    """
    from models.encoder.merging import merged
    from models.evaluation.significance.paired import forgets

    descending, scores = sorted(shares, reverse=True), dict[float, float]()
    chosen = descending[0]
    if dev is not None and len(descending) > 1:
        progress = progress_of("weighing, shares")
        first, last = (_loaded(work, ref, encoder) for ref in (start, trained))
        for done, share in enumerate([0.0, *descending]):
            scores[share] = _spearman(_cached(work, merged(first, last, share)), dev)
            chosen = share
            progress(done + 1, len(descending) + 1, f"share {share:g}")
            # Half the maximum loss is allowed, because the general dev set has sampling error.
            if share > 0 and not forgets(scores[share] - scores[0.0], config.max_forgetting / 100 / 2):
                break
    work.draft.write(pl.DataFrame([*scores.items()], schema=WEIGHING, orient="row"))
    work.draft.note({SHARE: chosen})
    if scores:
        show_table("weighing", weighed(scores.items()), "General dev set × 100 by share of the trained weights")


@stage(ref=CheckpointRef, version=2)
def merge(
    work: StageContext,
    start: CheckpointRef | ResolvedModel,
    trained: CheckpointRef,
    weighing: WeighingRef,
    encoder: EncoderConfig,
) -> None:
    """Merge the original and the trained encoder at the chosen share."""
    from models.encoder.merging import merged

    share = float(str(work.store.manifest(weighing).figures[SHARE]))
    result = merged(_loaded(work, start, encoder), _loaded(work, trained, encoder), share)
    result.save(work.draft.folder / ENCODER)
    work.draft.note({SHARE: share, "max_length": result.config.length})


class GeneralFigures(StageInputs):
    """Figures of the original and the adapted encoder on general sets."""

    scores: tuple[ScoresRef, ...]
    """Scores of both encoders."""
    comparisons: tuple[ComparisonRef, ...]
    """Differences between the encoders."""


@stage(ref=ProofRef, version=18)
def prove(
    work: StageContext,
    held_out: HeldOut,
    start: CheckpointRef | ResolvedModel,
    adapted: CheckpointRef,
    general: GeneralFigures,
    encoder: EncoderConfig,
) -> None:
    """Compare the original and the adapted encoder on held-out text and labels, and reach a verdict."""
    from models.evaluation.proof import answers, evidence
    from models.evaluation.verdict import general_evidence, judged
    from tasks.rendering.evidence import proof_rows

    config, questions = held_out.config, _questions(work, held_out)
    both = [answers(_cached(work, _loaded(work, ref, encoder)), questions) for ref in (start, adapted)]
    figures = [work.store.scan(ref).collect() for ref in general.scores]
    compared = [work.store.scan(ref).collect() for ref in general.comparisons]
    named = {name for table in figures for name in table["dataset"].unique()}
    headlines = {name: kind_of(in_full(name)).headline for name in sorted(named)}
    own = evidence(both[0], both[1], questions, config.bootstrap)
    rows = [*own, *general_evidence(figures, compared, headlines)]
    verdict = judged(rows, config.max_forgetting)
    unused = "" if verdict.word == "BETTER" else f" The adapted encoder is checkpoint/{adapted.key[:12]}."
    table = pl.DataFrame([asdict(row) for row in rows], schema=PROOF).fill_nan(None)
    work.draft.write(table)
    work.draft.note({VERDICT: verdict.word, "reason": verdict.reason, "advice": verdict.advice + unused})
    show_table("proof", proof_rows(table), f"{verdict.word}: {verdict.reason}")


@stage(ref=CheckpointRef, version=2)
def settle(
    work: StageContext,
    start: CheckpointRef | ResolvedModel,
    adapted: CheckpointRef,
    proof: ProofRef,
) -> None:
    """Publish the final encoder: the adapted one if its verdict is BETTER, else the original files, unchanged."""
    better = work.store.manifest(proof).figures[VERDICT] == "BETTER"
    # An embedded model's folder contains a manifest, which would be wrong for this artifact.
    ignored = shutil.ignore_patterns(MANIFEST, ".*")
    folder = encoder_folder(work.store, adapted if better else start)
    shutil.copytree(folder, work.draft.folder / ENCODER, ignore=ignored)
    work.draft.note({"adapted": better})


def check_asked(site: RunContext, passages: PassagesRef) -> None:
    """Check that held-out text suffices for evaluation, before translation and training; announce if labels are needed.

    Raises:
        EvaluationError: there are too few held-out sentences or documents.
    """
    store = site.open_store()
    if store.defect(passages) is not None:  # in a dry run
        return
    from models.evaluation.own_text import check_enough

    check_enough(store.scan(passages).filter(pl.col("part") == REPORT).collect(), REPORT)
    announce("without labels no gain can be proved: you get the original encoder. Give labels with --labels")


def _questions(work: StageContext, held_out: HeldOut) -> Questions:
    from models.evaluation.own_text import probes
    from models.evaluation.proof import Questions

    config = held_out.config
    sentences = work.store.scan(held_out.passages).filter(pl.col("part") == REPORT).collect()
    labelled = evaluation_labels(work.store, held_out.passages, held_out.labels, held_out.use, config.seed)
    return Questions(probes(sentences, questions=config.questions, seed=config.seed), labelled)


def _loaded(work: StageContext, ref: CheckpointRef | ResolvedModel, config: EncoderConfig) -> SentenceEncoder:
    from models.encoder.sentence_encoder import SentenceEncoder

    limit_threads(work.site)
    return SentenceEncoder.load(encoder_folder(work.store, ref), config)


def _cached(work: StageContext, encoder: SentenceEncoder) -> CachedEncoder:
    from models.encoder.sentence_encoder import CachedEncoder

    return CachedEncoder(encoder, device=device_of(work.site))


def _spearman(encode: Encode, dev: ScoredSet) -> float:
    from models.evaluation.correlation import cosine_scores, spearman

    rows = read_scored_set(dev)
    first, second = (encode(rows[side].to_list()) for side in ("sentence1", "sentence2"))
    return spearman(cosine_scores(first, second), rows["score"].to_numpy())
