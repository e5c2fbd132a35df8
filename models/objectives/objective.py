"""The interface between an objective and the training loop.

Shapes: B pairs, D width of sentence vectors, d leading dimensions of them.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeAlias

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bsl.models.errors import TrainingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from bsl.models.encoder.layouts import Tokens
    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer

P = ParamSpec("P")
VectorLoss: TypeAlias = "Callable[..., torch.Tensor]"  # sentence vectors of any width → a scalar


@dataclass(frozen=True)
class Batch:
    """Pairs over a table of sentences.

    Attributes:
        tokens: The sentences.
        view_1: (B,) sentence number of each pair's first view.
        view_2: (B,) sentence number of each pair's second view.
        columns: Columns of `COLUMNS` that the objective or the order needs, (B,) each; in place of `sentence_id`, if
            there is a teacher, its vectors (B, D) float32 of the sentences that the pairs were made from, `TEACHER`.
    """

    tokens: Tokens
    view_1: NDArray[np.int64]
    view_2: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.view_1)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Sentence numbers of all first views, then of all second views, (2B,)."""
        return np.concatenate([self.view_1, self.view_2])


class Objective(nn.Module, ABC):
    """Networks and a loss over batches of pairs; `online` is the encoder that is trained.

    A snapshot contains all direct submodules, so a parameter must be in one. All parameters have the training's
    learning rate, and matrices alone its weight decay.

    Attributes:
        config: Settings of the objective.
        data_parallel: Names of the modules that run on one process's share of a batch; all others see the whole batch.
        reads_tokens: What it does with tokens on the CPU at each step, so that the step has no static shape; empty if
            nothing.
        counts_tokens: Whether the CPU counts tokens at each step, so that the step cannot be captured.
        changes_layers: Whether its loss runs the transformer's layers in another form, so that they cannot be run again
            in the backward pass.
    """

    data_parallel: tuple[str, ...] = ("online",)
    reads_tokens: str = "selects its inputs on the CPU"
    counts_tokens: ClassVar[bool] = False
    changes_layers: ClassVar[bool] = False
    online: Encoder

    def __init__(self, online: Encoder, config: Any) -> None:  # noqa: ANN401 - each has its own
        super().__init__()
        self.online, self.config = online.train(), config

    @abstractmethod
    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the loss of a batch of B pairs, a scalar; the batch has the columns that the settings `needs`."""

    def on_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Hook: receive the tokenizer before the first step."""

    def fit_to_teacher(self, sample: Batch, vectors_ND: NDArray[np.float32]) -> None:  # for objectives with a teacher
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
    """An objective whose loss depends on sentence vectors alone.

    With `dims` the loss is L(h) + Σ_d L(h[:d]), so that the first d dimensions of a vector can be used alone
    (Matryoshka: Kusupati et al., 2022, equation 1 with all weights 1). All d share the networks above the encoder (the
    "efficient" form, section 3), which see the other dimensions as 0 (`widened`).

    Raises:
        TrainingError: A number in `dims` is not below the encoder's width.
    """

    reads_tokens = ""

    def __init__(self, online: Encoder, config: Any) -> None:  # noqa: ANN401 - as above
        super().__init__(online, config)
        if wide := [dim for dim in config.dims if dim >= online.width]:
            raise TrainingError(
                f"training.objective.dims contains {wide}, expected numbers below the encoder's width {online.width}. "
                "Lower them."
            )

    @abstractmethod
    def vectors_and_loss(self, batch: Batch) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return the vectors of a batch, each (rows, D), and the loss as a function of their first d dimensions."""

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the loss of a batch of B pairs, summed over D and all d: a scalar."""
        vectors, loss = self.vectors_and_loss(batch)
        total = loss(*vectors)
        for dim in self.config.dims:
            total = total + loss(*(x[:, :dim] for x in vectors))
        return total

    def widened(self, x_Bd: torch.Tensor) -> torch.Tensor:
        """Return vectors with zeros in place of the dimensions that the loss does not use, (B, D)."""
        return functional.pad(x_Bd, (0, self.online.width - x_Bd.shape[1])) if self.config.dims else x_Bd


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
