"""Evaluate an encoder during training: the geometry of its embeddings, and its Spearman correlation on a dev set.

Shapes: N pairs, D width.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.encoder.cross_encoder import CrossEncoder
from models.encoder.sentence_encoder import encode_tokens
from models.evaluation.correlation import cosine_scores, spearman
from models.evaluation.metrics import geometry
from models.training.batches import permutation, tokenise_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from models.encoder.network import Encoder
    from models.encoder.sentence_encoder import SentenceEncoder
    from models.objectives.objective import Batch
    from models.training.config import TrainingConfig
    from models.training.token_cache import TokenCache

    Vectors = NDArray[np.floating]

SAMPLE_PAIRS = 512  # training pairs for the geometry; uniformity needs 131 k distances


@dataclass(frozen=True)
class Evaluation:
    """Result of one evaluation; quantities as in `models.evaluation.metrics.Geometry`.

    Attributes:
        step: Optimizer steps done.
        dev_spearman: ρ on the dev set in [-1, 1], by the similarity of `TrainingConfig.dev_similarity`; None without a
            dev set, NaN if all its pairs have the same similarity.
    """

    step: int
    alignment: float
    uniformity: float
    std: float
    effective_rank: float
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
        self._similarities = SIMILARITIES[config.dev_similarity]
        self._dev, self._gold = None, np.zeros(0)
        if dev is not None:
            self._dev = tokenise_pairs(encoder, dev.select(text_1="sentence1", text_2="sentence2"))
            self._gold = dev["score"].cast(pl.Float64).to_numpy()

    def evaluate(self, encoder: Encoder, step: int, *, bf16: bool) -> Evaluation:
        """Evaluate without dropout."""
        figures = geometry(*_embed_pairs(encoder, self._sample, bf16=bf16))
        return Evaluation(step=step, **asdict(figures), dev_spearman=self._dev_spearman(encoder, bf16=bf16))

    def _dev_spearman(self, encoder: Encoder, *, bf16: bool) -> float | None:
        if self._dev is None:
            return None
        if isinstance(encoder, CrossEncoder):  # has no sentence vectors to compare
            scores = [encoder.scores(self._dev.tokens, self._dev.view_1, self._dev.view_2, bf16=bf16)]
        else:
            vectors = _embed_pairs(encoder, self._dev, bf16=bf16)
            scores = [similarity(*vectors) for similarity in self._similarities]
        # Equal scores for all pairs are a sign of collapse, not bad input: the caller handles the NaN.
        return max((spearman(score, self._gold) for score in scores if np.ptp(score) > 0), default=float("nan"))


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


def _embed_pairs(encoder: Encoder, pairs: Batch, *, bf16: bool) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the vectors of both views, with each distinct sentence embedded once."""
    rows, numbers = np.unique(np.concatenate([pairs.view_1, pairs.view_2]), return_inverse=True)
    vectors = encode_tokens(encoder, pairs.tokens.take(rows), bf16=bf16)
    return vectors[numbers[: len(pairs)]], vectors[numbers[len(pairs) :]]
