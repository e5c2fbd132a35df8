"""Adaptation stages: choose how much training to merge into the encoder, and evaluate on the other held-out half."""

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
from tasks.corpus.labels import labelled_halves
from tasks.embedding.encoders import encoder_folder
from tasks.evaluation.kinds import kind_of
from tasks.stage.cached import StageContext, StageInputs, stage
from tasks.stage.device import device_of, limit_threads
from tasks.stage.progress import announce
from tasks.stage.ui import progress_of, show_table

if TYPE_CHECKING:
    from models.corpus.passages import Part
    from models.encoder.merging import Encode
    from models.encoder.sentence_encoder import CachedEncoder, SentenceEncoder
    from models.evaluation.proof import Questions
    from tasks.stage.run_context import RunContext

SHARE, VERDICT = "share", "verdict"
"""Figures of a weighing; of a proof."""
GENERAL = "general set"


class HeldOut(StageInputs):
    """Held-out text and labels, with their use and the evaluation settings."""

    passages: PassagesRef
    """Sentences of the text, by part."""
    labels: LabelSource | None
    """Labels, if any."""
    use: Use
    """Use of the labels."""
    config: AdaptationEvaluationConfig
    """Number of questions, shares, bounds."""


@stage(ref=WeighingRef, version=9)
def weigh(
    work: StageContext,
    held_out: HeldOut,
    start: CheckpointRef | ResolvedModel,
    trained: CheckpointRef,
    dev: ScoredSet | None,
    encoder: EncoderConfig,
) -> None:
    """Choose a share of training: score mergers of the original and the trained encoder on the selection half.

    A merger's vectors are first interpolated. The best merger is then scored itself, and another is chosen if it falls
    short of its interpolated gain.
    """
    from models.encoder.merging import interpolated, merged
    from models.evaluation.proof import LABELS, answers, choose_share, figure_of, gain
    from models.evaluation.significance.paired import forgets

    config, questions = held_out.config, _questions(work, held_out, "choose")
    shares = config.shares if questions.labelled else (config.share,)
    progress = progress_of("weighing, encoders")
    first, last = (_loaded(work, ref, encoder) for ref in (start, trained))
    base, learnt = (_cached(work, own) for own in (first, first.with_network(last.network)))
    made = {0.0: answers(base, questions)}
    progress(1, 3, "start")
    made |= {share: answers(interpolated(base, learnt, share), questions) for share in shares}
    progress(2, 3, "trained")
    general: dict[float, float] = {}

    def gains() -> dict[float, float]:
        return {share: gain(made[0.0], made[share], questions) for share in shares}

    def forgetful(share: float) -> bool:
        if dev is None:
            return False
        general.setdefault(0.0, _spearman(base, dev))
        general[share] = _spearman(interpolated(base, learnt, share), dev)
        # Allow half the maximum loss, because the general dev set has sampling error.
        return forgets(general[share] - general[0.0], config.max_forgetting / 100 / 2)

    chosen, asked = choose_share(gains(), forgetful), {1.0}  # share 1 is the trained encoder itself: no interpolation
    while chosen not in asked:
        made[chosen] = answers(_cached(work, merged(first, last, chosen)), questions)
        asked.add(chosen)
        chosen = choose_share(gains(), forgetful)
    progress(3, 3, f"share {chosen:g}")
    rows = [
        (share, name, figure_of(name, own, questions), name == LABELS) for share, own in made.items() for name in own
    ]
    rows += [(share, GENERAL, value, False) for share, value in general.items()]
    table = pl.DataFrame(rows, schema=WEIGHING, orient="row")
    work.draft.write(table)
    work.draft.note({SHARE: chosen})
    from tasks.rendering.evidence import weighed

    show_table("weighing", weighed(table), "What each share of the training finds in the half that chooses, × 100")


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
    between = merged(_loaded(work, start, encoder), _loaded(work, trained, encoder), share)
    between.save(work.draft.folder / ENCODER)
    work.draft.note({SHARE: share, "max_length": between.config.length})


class GeneralFigures(StageInputs):
    """Figures of the original and the adapted encoder on general sets."""

    scores: tuple[ScoresRef, ...]
    """Scores of both encoders."""
    comparisons: tuple[ComparisonRef, ...]
    """Differences between the encoders."""


@stage(ref=ProofRef, version=13)
def prove(
    work: StageContext,
    held_out: HeldOut,
    start: CheckpointRef | ResolvedModel,
    adapted: CheckpointRef,
    general: GeneralFigures,
    encoder: EncoderConfig,
) -> None:
    """Compare the original and the adapted encoder on the report half, and reach a verdict."""
    from models.evaluation.proof import answers, evidence
    from models.evaluation.verdict import general_evidence, judged
    from tasks.rendering.evidence import proof_rows

    config, questions = held_out.config, _questions(work, held_out, "report")
    both = [answers(_cached(work, _loaded(work, ref, encoder)), questions) for ref in (start, adapted)]
    figures = [work.store.scan(ref).collect() for ref in general.scores]
    compared = [work.store.scan(ref).collect() for ref in general.comparisons]
    named = {name for table in figures for name in table["dataset"].unique()}
    headlines = {name: kind_of(in_full(name)).headline for name in sorted(named)}
    own = evidence(both[0], both[1], questions, config.bootstrap)
    rows = [*own, *general_evidence(figures, compared, headlines)]
    verdict = judged(rows, config.max_forgetting)
    learnt = "" if verdict.word == "BETTER" else f" What was learnt is checkpoint/{adapted.key[:12]}."
    table = pl.DataFrame([asdict(row) for row in rows], schema=PROOF).fill_nan(None)
    work.draft.write(table)
    work.draft.note({VERDICT: verdict.word, "reason": verdict.reason, "advice": verdict.advice + learnt})
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
    aside = shutil.ignore_patterns(MANIFEST, ".*")
    folder = encoder_folder(work.store, adapted if better else start)
    shutil.copytree(folder, work.draft.folder / ENCODER, ignore=aside)
    work.draft.note({"adapted": better})


def check_asked(site: RunContext, passages: PassagesRef) -> None:
    """Check that held-out text suffices for evaluation, before translation and training; announce if labels are needed.

    Raises:
        EvaluationError: a half has too few sentences or documents.
    """
    store = site.open_store()
    if store.defect(passages) is not None:  # in a dry run
        return
    from models.evaluation.own_text import check_enough

    for part in ("choose", "report"):
        check_enough(store.scan(passages).filter(pl.col("part") == part).collect(), part)
    announce("without labels no gain can be proved, and the start will be handed out; give some by --labels")


def _questions(work: StageContext, held_out: HeldOut, part: Part) -> Questions:
    from models.evaluation.own_text import probes
    from models.evaluation.proof import Questions

    config = held_out.config
    sentences = work.store.scan(held_out.passages).filter(pl.col("part") == part).collect()
    decided = part == "choose" and held_out.labels is not None  # by labels alone
    asked = {} if decided else probes(sentences, questions=config.questions, seed=config.seed)
    halves = labelled_halves(work.store, held_out.passages, held_out.labels, held_out.use, config.seed)
    return Questions(asked, halves.get(part))


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
