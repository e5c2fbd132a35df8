"""Distillation: a student learns a teacher's vectors of the same sentences, or their similarities.

Shapes: B pairs, S width of the student, D width of the teacher, Q places of the queue, N sentences that each sentence
is compared with.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bsl.models.encoder.heads import Dense
from bsl.models.objectives.columns import TEACHER
from bsl.models.objectives.objective import VectorObjective, full_precision
from bsl.models.runtime.device import uploaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsl.models.encoder.network import Encoder
    from bsl.models.objectives.distillation_config import DistilConfig
    from bsl.models.objectives.objective import Batch, VectorLoss

ACTIVATIONS = {"none": nn.Identity, "tanh": nn.Tanh}
RIDGE = 1e-2


class Distil(VectorObjective):
    """KL(p ‖ q) of a sentence's similarities to others, or the distance of its vector from the teacher's.

    `similarities`: p is the teacher's softmax, q the student's. With a queue, both are over the teacher's vectors in
    the queue and the batch (ConGen: Limkonchotiwat et al., Findings of EMNLP 2022, section 3). Without a queue, both
    are over the rest of the batch, as each network encodes it. `vectors`: the student learns the teacher's vector
    itself (Reimers and Gurevych, EMNLP 2020, section 2). With translations as second views, a multilingual student
    learns a monolingual teacher's space. Where widths must be equal but differ, the student gets a projection.

    Example:
        >>> objective = Distil(encoder, DistilConfig())
        >>> objective(batch).item() > 0  # (B, S) and (B, D) vectors → a scalar
        True
    """

    config: DistilConfig

    def __init__(self, online: Encoder, config: DistilConfig) -> None:
        super().__init__(online, config)
        self.projection: nn.Module = nn.Identity()
        self.queue = VectorQueue()

    def fit_to_teacher(self, sample: Batch, vectors_ND: NDArray[np.float32]) -> None:
        """Make the projection and fill the queue.

        Raises:
            TrainingError: The queue has more places than the teacher has sentences.
        """
        self.config.check_sentences(len(vectors_ND))
        self.queue.fill(vectors_ND, self.config.queue)
        online, width = self.online, vectors_ND.shape[1]
        if not self.config.compares_vectors or online.width == width:
            return
        if self.config.projection == "dropped":
            self.projection = self._dense(online, sample, width)
            return
        below = online.without_normalize()  # the projection goes before the student's last step, scaling to length 1
        heads = [*below.sentence_heads, self._dense(below, sample, width)]
        self.online = online.with_heads(online.config, online.token_heads, heads)

    def _dense(self, below: Encoder, sample: Batch, width: int) -> Dense:
        dense = Dense(below.width, width, activation=ACTIVATIONS[self.config.activation])
        if self.config.projection_start == "fitted":
            h_NS = torch.from_numpy(below.encode(sample.tokens.take(sample.view_1)))
            weight_DS, bias_D = linear_fit(h_NS, torch.as_tensor(sample.columns[TEACHER]))
            dense.linear.weight.data.copy_(weight_DS)
            dense.linear.bias.data.copy_(bias_D)
        return dense

    def vectors_and_loss(self, batch: Batch) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return the student's vectors of the views that it reads, and the mean loss over these views."""
        views = [batch.view_1, batch.view_2] if self.config.views == "both" else [batch.view_1]
        rows = np.concatenate(views)
        h_RS = self.projection(self.online.embed_rows(batch.tokens, rows))
        return h_RS.chunk(len(views)), partial(self._mean_loss, t_BD=uploaded(batch.columns[TEACHER], h_RS.device))

    def _mean_loss(self, *views: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
        loss = torch.stack([self.loss(h_BS, t_BD) for h_BS in views]).mean()
        self.queue.push(t_BD)
        return loss

    def loss(self, h_BS: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
        """Return the loss of the student's vectors h of one view against the teacher's t, a scalar ≥ 0."""
        config = self.config
        if config.loss == "vectors":
            return vector_distance(h_BS, t_BD, config.distance)
        loss = similarity_divergence(
            h_BS, t_BD, self.queue.vectors, config.student_temperature, config.teacher_temperature
        )
        if config.vectors_weight > 0:
            loss = loss + config.vectors_weight * vector_distance(h_BS, t_BD, config.distance)
        return loss


def linear_fit(h_NS: torch.Tensor, t_ND: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Fit t ≈ W·h + b by ridge regression and return W (D, S) and b (D,).

    The penalty is `RIDGE` times the mean variance of h, because a student's dimensions are seldom independent.
    """
    h_NS, t_ND = h_NS.double(), t_ND.double()
    mean_S, mean_D = h_NS.mean(dim=0), t_ND.mean(dim=0)
    centred_NS = h_NS - mean_S
    covariance_SS = centred_NS.T @ centred_NS / len(h_NS)
    covariance_SS += RIDGE * covariance_SS.diagonal().mean() * torch.eye(len(covariance_SS), dtype=torch.float64)
    weight_SD = torch.linalg.solve(covariance_SS, centred_NS.T @ (t_ND - mean_D) / len(h_NS))
    return weight_SD.T, mean_D - mean_S @ weight_SD


@full_precision
def vector_distance(h_BD: torch.Tensor, t_BD: torch.Tensor, distance: str) -> torch.Tensor:
    """Return the distance of vectors from the teacher's, a scalar ≥ 0.

    Args:
        h_BD: The student's vectors.
        t_BD: The teacher's vectors.
        distance: `mse` is the mean over B and D of (h − t)², `cosine` the mean over B of 1 − cos(h, t).
    """
    if distance == "mse":
        return functional.mse_loss(h_BD, t_BD)
    return (1 - functional.cosine_similarity(h_BD, t_BD)).mean()


@full_precision
def similarity_divergence(
    h_BS: torch.Tensor,
    t_BD: torch.Tensor,
    queue_QD: torch.Tensor,
    student_temperature: float,
    teacher_temperature: float,
) -> torch.Tensor:
    """Return KL(p ‖ q), averaged over the batch: a scalar ≥ 0.

    p and q are the softmax of the teacher's and of the student's cosines with N vectors, each divided by its
    temperature. With a queue, the N = Q + B vectors are the teacher's, from the queue and the batch. Without a queue,
    they are each network's own vectors of the B − 1 other sentences of the batch.

    Args:
        h_BS: The student's vectors; with a queue S = D.
        t_BD: The teacher's vectors of the same sentences.
        queue_QD: Unit vectors of the teacher; without rows, there is no queue.
        student_temperature: Divides the student's cosines.
        teacher_temperature: Divides the teacher's cosines.
    """
    h_BS, t_BD = functional.normalize(h_BS, dim=-1), functional.normalize(t_BD, dim=-1)
    if len(queue_QD):
        student_BN, teacher_BN = (torch.cat([x @ queue_QD.T, x @ t_BD.T], dim=1) for x in (h_BS, t_BD))
    else:
        # A sentence's product with itself would outweigh all others.
        student_BN, teacher_BN = (off_diagonal(x @ x.T) for x in (h_BS, t_BD))
    log_q_BN = functional.log_softmax(student_BN / student_temperature, dim=1)
    log_p_BN = functional.log_softmax(teacher_BN / teacher_temperature, dim=1)
    return functional.kl_div(log_q_BN, log_p_BN, reduction="batchmean", log_target=True)


def off_diagonal(x_BB: torch.Tensor) -> torch.Tensor:
    """Return a square matrix without its diagonal, (B, B − 1).

    Indexing by a mask would make a GPU wait for the number of elements.
    """
    size = len(x_BB)
    return x_BB.flatten()[1:].view(size - 1, size + 1)[:, :-1].reshape(size, size - 1)


class VectorQueue(nn.Module):
    """Queue of Q unit vectors; the vectors of a new batch replace the oldest. It is empty until `fill`.

    Attributes:
        vectors: (Q, D), in no order.
        place: Row that the next vector replaces.
    """

    vectors: torch.Tensor
    place: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(0, 0))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def fill(self, vectors_ND: NDArray[np.float32], places: int) -> None:
        """Fill the queue with `places` rows of `vectors_ND`, drawn at random from torch's generator and normalised."""
        rows = np.sort(torch.randperm(len(vectors_ND))[:places].numpy())
        self.vectors = functional.normalize(torch.from_numpy(np.array(vectors_ND[rows])), dim=-1).to(self.place.device)

    @torch.no_grad()
    def push(self, vectors_BD: torch.Tensor) -> None:
        """Replace the oldest vectors by a batch's; do nothing if the queue has no places."""
        places = len(self.vectors)
        if places == 0:
            return
        newest = functional.normalize(vectors_BD[-places:], dim=-1)
        at = (self.place + torch.arange(len(newest), device=newest.device)) % places
        # Not in place: the backward pass of this batch still needs the old vectors.
        self.vectors = self.vectors.index_copy(0, at, newest.to(self.vectors.dtype))
        self.place.copy_((self.place + len(newest)) % places)
