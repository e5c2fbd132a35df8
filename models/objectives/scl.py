"""Supervised contrastive learning (Liao, 2021): classify pairs, and pull premises to hypotheses that they entail.

    premise u ─▶ encoder ─┬─▶ classifier on (u, v, |u − v|) ─▶ cross-entropy ─┐
                          │                                                   ├─▶ (1 − λ) · CE + λ · SCL  (equation 3)
    hypothesis v ─────────┴─▶ anchors u against all v of the batch ─▶ SCL ────┘

An anchor is the premise of an entailed row. Its positives are the hypotheses in the batch that the same premise
entails. Its negatives are all other hypotheses: neutral or contradicting ones of the same premise, and other premises'.

Shapes: A anchors, B pairs, D width, P further pairs.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from bsl.models.objectives.objective import VectorObjective, full_precision
from bsl.models.objectives.supervised import PairClassifier, cross_entropy, labels_of
from bsl.models.runtime.device import uploaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsl.models.encoder.network import Encoder
    from bsl.models.objectives.objective import Batch, VectorLoss
    from bsl.models.objectives.supervised_config import SCLConfig

ENTAILMENT, CONTRADICTION = 0, 2


@dataclass(frozen=True)
class Contrasts:
    """Anchors of a batch with their positives and negatives.

    Attributes:
        anchors: (A,) rows whose premise is an anchor.
        positives: (A, B), True where the row's hypothesis is a positive of the anchor; at least the anchor's own.
        negatives: (A, B), True where the row's hypothesis is a negative of the anchor.
    """

    anchors: NDArray[np.int64]
    positives: NDArray[np.bool_]
    negatives: NDArray[np.bool_]


class SCL(VectorObjective):
    """L = (1 − λ) · cross-entropy + λ · supervised contrast; the classifier is dropped after training.

    Source: Liao, 2021 (arXiv:2106.04791), equations 2 and 3.

    Example:
        >>> objective = SCL(encoder, SCLConfig(weight=0.3))
        >>> objective(batch).item() > 0  # (B, D) vectors of both sentences, labels, groups → a scalar
        True
    """

    config: SCLConfig

    def __init__(self, online: Encoder, config: SCLConfig) -> None:
        super().__init__(online, config)
        self.classifier = PairClassifier(online.width, config)

    def vectors_and_loss(self, batch: Batch) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return premises u, hypotheses v, each (B, D), and `loss`."""
        vectors = self.online.embed_rows(batch.tokens, batch.rows).chunk(2)
        return vectors, partial(self.loss, batch=batch, contrasts=contrasts_of(batch, self.config))

    def loss(self, u_BD: torch.Tensor, v_BD: torch.Tensor, batch: Batch, contrasts: Contrasts) -> torch.Tensor:
        """Return equation 3 for premises u and hypotheses v; only its cross-entropy term where no pair is entailed."""
        labels_B = labels_of(batch, self.config.classes, self.online.device)
        if self.config.control == "augment":
            return self._augmented(u_BD, v_BD, labels_B, batch, contrasts)
        loss = (1.0 - self.config.weight) * cross_entropy(self._classified(u_BD, v_BD), labels_B)
        if len(contrasts.anchors) == 0 or self.config.weight == 0:
            return loss
        return loss + self.config.weight * contrast(u_BD, v_BD, contrasts, self.config)

    def _classified(self, u_BD: torch.Tensor, v_BD: torch.Tensor) -> torch.Tensor:
        logits_BC: torch.Tensor = self.classifier(self.widened(u_BD), self.widened(v_BD))
        return logits_BC

    def _augmented(
        self, u_BD: torch.Tensor, v_BD: torch.Tensor, labels_B: torch.Tensor, batch: Batch, contrasts: Contrasts
    ) -> torch.Tensor:
        premises, hypotheses, labels = further_pairs(batch, contrasts)
        first_P, second_P, labels_P = (uploaded(values, u_BD.device) for values in (premises, hypotheses, labels))
        u_XD = torch.cat([u_BD, u_BD.index_select(0, first_P)])
        v_XD = torch.cat([v_BD, v_BD.index_select(0, second_P)])
        return cross_entropy(self._classified(u_XD, v_XD), torch.cat([labels_B, labels_P]))


def contrasts_of(batch: Batch, config: SCLConfig) -> Contrasts:
    """Return the anchors of a batch with the configured numbers of positives and negatives.

    The random draw depends on the batch alone, so that processes agree on it and a resumed run needs no state.
    """
    groups_B, entails_B = batch.columns["group"], batch.columns["label"] == ENTAILMENT
    anchors = np.flatnonzero(entails_B)
    entailed_AB = (groups_B[anchors, None] == groups_B) & entails_B
    own_AB = anchors[:, None] == np.arange(len(batch))
    random = np.random.Generator(np.random.PCG64(zlib.crc32(batch.tokens.ids.tobytes())))
    others = None if config.positives is None else config.positives - 1
    positives_AB = own_AB | _drawn(entailed_AB & ~own_AB, others, random)
    return Contrasts(anchors, positives_AB, _drawn(~entailed_AB, config.negatives, random))


def further_pairs(batch: Batch, contrasts: Contrasts) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the control's additional pairs: rows of their premises, rows of their hypotheses, and labels, each (P,).

    A hypothesis of the same premise keeps its label; one of another premise counts as a contradiction.
    """
    groups_B, labels_B = batch.columns["group"], batch.columns["label"]
    anchor_P, second_P = np.nonzero(contrasts.positives | contrasts.negatives)
    first_P = contrasts.anchors[anchor_P]
    same_premise_P = groups_B[first_P] == groups_B[second_P]
    labels_P = np.where(same_premise_P, labels_B[second_P], CONTRADICTION)
    new_P = first_P != second_P  # an anchor with its own hypothesis is in the batch already
    return first_P[new_P], second_P[new_P], labels_P[new_P]


def contrast(u_BD: torch.Tensor, v_BD: torch.Tensor, contrasts: Contrasts, config: SCLConfig) -> torch.Tensor:
    """Return `contrastive_error` with the configured similarity and temperature."""
    device = u_BD.device
    u_AD = u_BD.index_select(0, uploaded(contrasts.anchors, device))
    if config.similarity == "cosine":
        u_AD, v_BD = functional.normalize(u_AD, dim=-1), functional.normalize(v_BD, dim=-1)
    positives_AB, negatives_AB = (uploaded(x, device) for x in (contrasts.positives, contrasts.negatives))
    return contrastive_error(u_AD, v_BD, positives_AB, negatives_AB, config.temperature)


@full_precision
def contrastive_error(
    u_AD: torch.Tensor,
    v_BD: torch.Tensor,
    positives_AB: torch.Tensor,
    negatives_AB: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    """Return the mean over anchors of −1/|P| Σ_p log(exp(u·v_p/τ) / Σ_a exp(u·v_a/τ)), a in P ∪ N (equation 2): ≥ 0.

    Args:
        u_AD: Anchors.
        v_BD: Hypotheses that the anchors are compared with.
        positives_AB: P of each anchor, at least one.
        negatives_AB: N of each anchor.
        temperature: τ.
    """
    logits_AB = u_AD @ v_BD.T / temperature
    shown_AB = logits_AB.masked_fill(~(positives_AB | negatives_AB), float("-inf"))
    errors_AB = shown_AB.logsumexp(dim=1, keepdim=True) - logits_AB
    return (errors_AB.masked_fill(~positives_AB, 0.0).sum(dim=1) / positives_AB.sum(dim=1)).mean()


def _drawn(candidates_AB: NDArray[np.bool_], number: int | None, random: np.random.Generator) -> NDArray[np.bool_]:
    """Draw at most `number` candidates of each row without replacement; None returns all."""
    if number is None:
        return candidates_AB
    keys_AB = np.where(candidates_AB, random.random(candidates_AB.shape), np.inf)
    rank_AB = keys_AB.argsort(axis=1).argsort(axis=1)
    return candidates_AB & (rank_AB < number)
