"""Evaluate an encoder during training (geometry, Spearman on a dev set), detect harmful training, and suggest a remedy.

- collapse: vectors lose rank or spread and no longer distinguish sentences, even if the loss falls
- decline: vectors keep their spread, but dev Spearman is below that of the starting encoder
- divergence: a loss or gradient is not finite; `train` raises `NonFiniteLossError`

Shapes: N pairs, D width.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.evaluation.geometry import Geometry, geometry
from bsl.models.training.batches import permutation, tokenise_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.training.config import CollapseConfig, TrainingConfig
    from bsl.models.training.token_cache import TokenCache

    Vectors = NDArray[np.floating]

COLLAPSE_RATIO: Final = 0.5  # of the rank and spread at the start: below it, the finding is a collapse
CONTINUE_HINT: Final = "training.collapse=null continues regardless"
SAMPLE_PAIRS = 512  # training pairs for the geometry; uniformity needs 131 k distances


@dataclass(frozen=True, kw_only=True)
class StepEvaluation(Geometry):
    """Result of one evaluation.

    Attributes:
        step: Optimizer steps done.
        dev_spearman: ρ on the dev set in [-1, 1], by the similarity of `TrainingConfig.dev_similarity`; None without a
            dev set, NaN if all its pairs have the same similarity.
    """

    step: int
    dev_spearman: float | None


class DevEvaluator:
    """Evaluates an encoder on a fixed sample of training pairs and on the dev set."""

    def __init__(
        self,
        pairs: TokenCache,
        dev: pl.DataFrame | None,
        encoder: SentenceEncoder,
        config: TrainingConfig,
    ) -> None:
        self._sample = pairs.take(permutation(len(pairs), config.seed, 0)[:SAMPLE_PAIRS])
        self._similarity = config.dev_similarity
        self._dev, self._gold = None, np.zeros(0)
        if dev is not None:
            self._dev = tokenise_pairs(encoder, dev.select(text_1="sentence1", text_2="sentence2"))
            self._gold = dev["score"].cast(pl.Float64).to_numpy()

    def evaluate(self, encoder: Encoder, step: int, *, bf16: bool) -> StepEvaluation:
        """Evaluate without dropout."""
        sample = self._sample
        figures = geometry(*encoder.encode_pairs(sample.tokens, sample.view_1, sample.view_2, bf16=bf16))
        return StepEvaluation(step=step, **asdict(figures), dev_spearman=self._dev_spearman(encoder, bf16=bf16))

    def _dev_spearman(self, encoder: Encoder, *, bf16: bool) -> float | None:
        if self._dev is None:
            return None
        dev = self._dev
        scores = encoder.pair_scores(dev.tokens, dev.view_1, dev.view_2, self._similarities, bf16=bf16)
        # Equal scores for all pairs are a sign of collapse, not bad input: the caller handles the NaN.
        varied = [score for score in np.atleast_2d(scores) if np.ptp(score) > 0]
        return max((spearman(score, self._gold) for score in varied), default=float("nan"))

    def _similarities(self, a_ND: Vectors, b_ND: Vectors) -> NDArray[np.float64]:
        return np.stack([similarity(a_ND, b_ND) for similarity in SIMILARITIES[self._similarity]])


SIMILARITIES: Final[Mapping[str, Sequence[Callable[[Vectors, Vectors], NDArray[np.float64]]]]] = {
    "cosine": (cosine_scores,),
    "best-of-four": (
        cosine_scores,
        lambda a_ND, b_ND: -np.abs(a_ND.astype(np.float64) - b_ND).sum(axis=1),  # Manhattan
        lambda a_ND, b_ND: -np.linalg.norm(a_ND.astype(np.float64) - b_ND, axis=1),  # Euclidean
        lambda a_ND, b_ND: np.einsum("nd,nd->n", a_ND.astype(np.float64), b_ND),  # dot product
    ),
}
"""Value of `TrainingConfig.dev_similarity` → similarity functions, (N,) each, higher for more similar vectors."""


def finding_of(history: Sequence[StepEvaluation], config: TrainingConfig, *, final: bool) -> str:
    """Return why a run should end now, if its latest evaluations are much worse than the first one.

    Args:
        history: All evaluations so far, the one before the first step included.
        config: Thresholds, and the settings that a remedy has to fit.
        final: Whether no evaluation will follow, so that one suspicious evaluation is enough.

    Returns:
        Collapse or decline with its evidence and a remedy; empty if the run may continue.
    """
    bounds = config.collapse
    start, later = history[0], history[1:]
    needed = 1 if final or bounds is None else bounds.patience
    if bounds is None or len(later) < needed:
        return ""
    reasons = [_suspicion(start, evaluation, bounds) for evaluation in later[-needed:]]
    return _finding(history, str(reasons[-1]), config) if all(reasons) else ""


def divergence_remedy(config: TrainingConfig) -> str:
    """Return the remedy for a loss or gradient that is not finite."""
    precision = "Set training.precision=fp32, or lower" if config.precision != "fp32" else "Lower"
    return f"{precision} training.lr (now {config.lr:g}) to {config.lr / 10:g}, or check these rows"


def _suspicion(start: StepEvaluation, now: StepEvaluation, bounds: CollapseConfig) -> str | None:
    # An encoder may start below a bound; it has collapsed only if training made it worse.
    if now.effective_rank < min(bounds.min_effective_rank, start.effective_rank):
        return f"effective rank is below {bounds.min_effective_rank}"
    if now.std < min(bounds.min_std, start.std):
        return f"the standard deviation of the unit vectors is below {bounds.min_std}"
    # NaN at the start (all dev pairs have the same cosine) leaves nothing to compare with.
    if start.dev_spearman is not None and now.dev_spearman is not None and not math.isnan(start.dev_spearman):
        drop = start.dev_spearman - now.dev_spearman
        if not drop <= bounds.max_dev_drop:  # written so that NaN counts as a drop
            return f"dev Spearman fell by {drop:.3f}, more than {bounds.max_dev_drop}"
    return None


def _finding(history: Sequence[StepEvaluation], reason: str, config: TrainingConfig) -> str:
    start, now = history[0], history[-1]
    shrunk = now.effective_rank < COLLAPSE_RATIO * start.effective_rank or now.std < COLLAPSE_RATIO * start.std
    # NaN, the same cosine for all dev pairs, is a collapse too.
    if shrunk or (now.dev_spearman is not None and math.isnan(now.dev_spearman)):
        slower = f"Lower training.lr (now {config.lr:g}) to {config.lr / 10:g}"
        what, remedy = "representations collapsed", f"{config.objective.collapse_advice() or slower}; {CONTINUE_HINT}"
    else:
        what, remedy = "the encoder got worse", _decline_remedy(config, max(history, key=_dev).step)
    return f"{what} by step {now.step}: {reason} ({_evidence(start, now)}). {remedy}"


def _dev(evaluation: StepEvaluation) -> float:
    score = evaluation.dev_spearman
    return -2.0 if score is None or math.isnan(score) else score


def _decline_remedy(config: TrainingConfig, best_step: int) -> str:
    if best_step:
        step = (
            f"The dev score was best at step {best_step}: set training.max_steps to it, or lower training.lr (now "
            f"{config.lr:g})"
        )
    else:
        step = (
            f"No step was better than the original encoder: lower training.lr (now {config.lr:g}) to {config.lr / 10:g}"
        )
    if config.objective.lacks_negatives:
        step += ", or add in-batch negatives with training.objective.contrastive_weight=0.1"
    return f"{step}; {CONTINUE_HINT}"


def _evidence(start: StepEvaluation, now: StepEvaluation) -> str:
    names = ("dev_spearman", "effective_rank", "std", "uniformity", "alignment")
    pairs = {name: (getattr(start, name), getattr(now, name)) for name in names}
    return ", ".join(f"{name} {a:.4g} → {b:.4g}" for name, (a, b) in pairs.items() if None not in (a, b))
