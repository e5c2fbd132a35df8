"""The interface between an objective and the training loop.

Shapes: B pairs, D width of sentence vectors.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, TypeAlias

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from models.encoder.network import Encoder
    from models.encoder.static import Tokenizer
    from models.encoder.unpadded import Tokens

P = ParamSpec("P")
Need: TypeAlias = Literal["label", "score", "group", "sentence_id"]  # a column of pairs; ids select a teacher's vectors
VectorLoss: TypeAlias = "Callable[..., torch.Tensor]"  # sentence vectors of any width → a scalar


@dataclass(frozen=True)
class Batch:
    """Pairs over a table of sentences; fields that the objective does not need are None.

    Attributes:
        tokens: The sentences.
        view_1: (B,) sentence number of each pair's first view.
        view_2: (B,) sentence number of each pair's second view.
        labels: (B,) int64, the pair's class.
        scores: (B,) float32 in [0, 1], the pair's gold similarity; NaN where it may be null and is.
        groups: (B,) uint64, the pair's group, such as its premise.
        teacher: (B, D) float32, another encoder's vector of the sentence that the pair was made from.
    """

    tokens: Tokens
    view_1: NDArray[np.int64]
    view_2: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None
    scores: NDArray[np.float32] | None = None
    groups: NDArray[np.uint64] | None = None
    teacher: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.view_1)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Sentence numbers of all first views, then of all second views, (2B,)."""
        return np.concatenate([self.view_1, self.view_2])


class Objective(nn.Module, ABC):
    """Networks and a loss over batches of pairs; `online` is the encoder that is trained.

    A snapshot contains all direct submodules.

    Attributes:
        config: Settings of the objective.
        data_parallel: Names of the modules that run on one process's share of a batch; all others see the whole batch.
        needs: Columns that the pairs must have besides the two views.
    """

    data_parallel: tuple[str, ...] = ("online",)
    needs: frozenset[Need] = frozenset()
    online: Encoder

    def __init__(self, online: Encoder, config: Any) -> None:  # noqa: ANN401 - each has its own
        super().__init__()
        self.online, self.config = online.train(), config

    @abstractmethod
    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """Return the loss of a batch of B pairs, a scalar.

        Args:
            batch: The pairs, with the columns that the objective `needs`.
            batch_tokens: Padded tokens in a forward pass of an encoder; changes rounding only.
        """

    def saved_modules(self) -> dict[str, nn.Module]:
        """Return the modules of a snapshot by name."""
        return dict(self.named_children())

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Hook: receive the tokenizer before the first step."""

    def meet_teacher(self, sample: Batch, vectors_ND: NDArray[np.float32]) -> None:  # for objectives with a teacher
        """Hook: receive the teacher before the first step, where pairs come with its vectors.

        Args:
            sample: Some of the pairs.
            vectors_ND: The teacher's vectors of all N sentences, which may be memory-mapped.
        """

    def learning_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that the optimizer changes."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def momentum(self, step: int, total: int) -> float | None:  # noqa: ARG002 - for objectives with a target
        """Return δ after optimizer step `step` (1-based) of `total`; None for an objective without a target."""
        return None

    def update_target(self, momentum: float) -> None:
        """Hook: move the target after an optimizer step (BSL, equation 4)."""


class VectorObjective(Objective):
    """An objective whose loss depends on sentence vectors alone, so that `Matryoshka` can wrap it.

    Attributes:
        heads: Names of networks from D dimensions to D dimensions that the loss applies to the vectors.
        classifiers: Names of networks from D dimensions to classes.
    """

    heads: ClassVar[Sequence[str]] = ()
    classifiers: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def vectors_and_loss(self, batch: Batch, batch_tokens: int) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return the vectors of a batch, each (rows, D), and the loss as a function of them."""

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """Return the loss of a batch of B pairs, a scalar."""
        vectors, loss = self.vectors_and_loss(batch, batch_tokens)
        return loss(*vectors)


def full_precision(loss: Callable[P, torch.Tensor]) -> Callable[P, torch.Tensor]:
    """Run a loss outside autocast, on floating tensors widened to fp32 at least (float64 stays).

    Widening alone is not enough: autocast also computes products of fp32 matrices in bf16. Dividing by a temperature of
    0.05 turns their error in the third digit into one in the first.
    """

    @functools.wraps(loss)
    def wide(*args: P.args, **kwargs: P.kwargs) -> torch.Tensor:
        devices = {value.device.type for value in args if isinstance(value, torch.Tensor)}
        with torch.autocast(devices.pop(), enabled=False):
            return loss(*(_widened(value) for value in args), **kwargs)  # type: ignore[arg-type]

    return wide


def _widened(value: object) -> object:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.to(torch.promote_types(value.dtype, torch.float32))
