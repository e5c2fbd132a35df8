"""Steps on batches of a few fixed shapes; on a GPU each shape's whole step is one captured graph.

    batch ─▶ its shape's memory ─▶ [forward ─▶ backward ─▶ clipping ─▶ optimizer ─▶ target] replayed ─▶ loss, norm

In a step of thousands of small kernels, a GPU waits for their launches. The first batch of a shape takes a plain step,
which creates the state of the optimizer and of torch. The step of the second batch is captured, which computes nothing,
then replayed. All graphs use the same weights, optimizer state and buffers, and share memory for intermediate results.

The order of batches is known before the first step, so the shapes with the least padding are chosen from real batches.
A batch costs the tokens of its row; the length of its longest sentence affects only the padding in attention. A batch
that fits no shape, and every batch of a run that cannot be captured, takes the packed step.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from bsl.models.encoder.shaped import FixedLayouts, Shape
from bsl.models.objectives.columns import COLUMNS, TEACHER
from bsl.models.runtime.device import processes, uploaded
from bsl.models.training.optimizer import compute
from bsl.storage.filesystem.os_errors import first_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsl.models.objectives.objective import Batch
    from bsl.models.training.batches import BatchOrder
    from bsl.models.training.config import TrainingConfig
    from bsl.models.training.optimizer import Compute, Figures
    from bsl.models.training.snapshots import TrainingState
    from bsl.models.training.token_cache import TokenCache

logger = logging.getLogger(__name__)

MAX_SHAPES: Final = 6  # shapes: each is captured once and needs the memory of a graph
MULTIPLE: Final = 8  # tensor cores need token counts in multiples of 8
SAMPLED: Final = 1 << 16  # pairs of the first steps to choose from; a later batch that fits no shape is packed


def compute_for(
    run: TrainingState, config: TrainingConfig, data: TokenCache, order: BatchOrder, *, static: bool | None
) -> Compute:
    """Return the function that computes a run's steps; restore a snapshot before calling this.

    Args:
        run: State of the run.
        config: Settings of the run.
        data: Pairs of the run.
        order: Order of its batches.
        static: Whether to pad batches to fixed shapes; None: only on a GPU.
    """
    if static is None:
        static = run.objective.online.device.type == "cuda"
    if not static:
        return compute
    return StaticSteps(run, config, choose_shapes(data, order, run.total, config.batch_size), data.pad_id)


class StaticSteps:
    """Replacement of `compute` in `take_step`, for batches of fixed shapes.

    Attributes:
        refusal: Why batches take the packed step; empty if they do not.

    Args:
        run: State of the run, after restoring a snapshot.
        config: Settings of the run.
        shapes: Shapes, smallest first.
        pad_id: The tokenizer's padding token.
    """

    def __init__(self, run: TrainingState, config: TrainingConfig, shapes: Sequence[Shape], pad_id: int) -> None:
        self._shapes, self._memory = shapes, dict[int, _Memory]()
        self._device = run.objective.online.device
        self._captures = self._device.type == "cuda"
        self.refusal = _refusal(run, config, pad_id, captures=self._captures)
        if self.refusal:
            logger.info("training steps are packed instead of static shapes: %s", self.refusal)
        elif self._captures:
            # A separate stream, as for captures, because gradients belong to the stream that first made them.
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
            self._pool = torch.cuda.graph_pool_handle()
            for group in run.optimizer.param_groups:
                group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=self._device)

    def __call__(self, run: TrainingState, batch: Batch, config: TrainingConfig, momentum: float | None) -> Figures:
        """Compute a step as `compute` does, up to rounding."""
        number = None if self.refusal else self._shape_of(batch, config)
        if number is None:
            return compute(run, batch, config, momentum)
        first = number not in self._memory
        if first:
            self._memory[number] = _Memory(self._shapes[number], batch, self._device)
        memory = self._memory[number]
        copied = memory.fill(batch)
        if not self._captures:
            return _in_place(run, copied, config, momentum)
        if first:
            return self._on_stream(run, copied, config, momentum)
        if memory.graph is None:
            try:
                self._capture(memory, run, copied, config, momentum)
            except RuntimeError as error:
                self.refusal = first_line(error)
                logger.warning(
                    "training steps are packed from now on, because a step cannot be captured: %s", self.refusal
                )
                return compute(run, batch, config, momentum)
        return memory.replay()

    def _shape_of(self, batch: Batch, config: TrainingConfig) -> int | None:
        if len(batch) != config.batch_size:
            return None
        lengths_B2 = batch.tokens.lengths.reshape(2, -1).T
        return next((number for number, shape in enumerate(self._shapes) if shape.fits(lengths_B2)), None)

    def _on_stream(self, run: TrainingState, batch: Batch, config: TrainingConfig, momentum: float | None) -> Figures:
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            loss, norm = _in_place(run, batch, config, momentum)
        current.wait_stream(self._stream)
        return loss, norm

    def _capture(
        self, memory: _Memory, run: TrainingState, batch: Batch, config: TrainingConfig, momentum: float | None
    ) -> None:
        graph, groups = torch.cuda.CUDAGraph(), run.optimizer.param_groups
        for group in groups:
            group["capturable"] = True
        try:
            # Other threads may call CUDA meanwhile.
            with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                memory.figures = _in_place(run, batch, config, momentum)
            memory.graph = graph
        finally:
            for group in groups:
                group["capturable"] = False
            run.optimizer.zero_grad(set_to_none=True)  # gradients are in the graph's memory


class _Memory:
    """Inputs and outputs of a shape's step, at fixed addresses."""

    def __init__(self, shape: Shape, batch: Batch, device: torch.device) -> None:
        self._device = device
        self._layouts = FixedLayouts(shape, len(batch), device)
        self._values = {name: uploaded(value, device).clone() for name, value in _values(batch).items()}
        self.graph: torch.cuda.CUDAGraph | None = None
        self.figures: Figures | None = None

    def fill(self, batch: Batch) -> Batch:
        """Copy a batch's tokens and values into this memory, after all steps queued on the device, and return it."""
        for name, value in _values(batch).items():
            self._values[name].copy_(uploaded(value, self._device))
        changes: dict[str, Any] = {"tokens": self._layouts.fill(batch.tokens), "columns": self._values}
        return dataclasses.replace(batch, **changes)

    def replay(self) -> Figures:
        """Take the captured step on the batch in this memory."""
        assert self.graph is not None
        assert self.figures is not None
        self.graph.replay()
        loss, norm = self.figures
        return loss.clone(), norm.clone()  # the next graph may use their memory


def _values(batch: Batch) -> dict[str, Any]:
    on_device = {TEACHER, *(name for name, column in COLUMNS.items() if column.on_device)}
    return {name: value for name, value in batch.columns.items() if name in on_device}


def _in_place(run: TrainingState, batch: Batch, config: TrainingConfig, momentum: float | None) -> Figures:
    """Call `compute`, then copy buffers that the objective replaced, such as a queue, into the original tensors.

    After a failed step, such as an aborted capture, the original buffers are restored.
    """
    before = [(module, name, tensor) for module in run.objective.modules() for name, tensor in module._buffers.items()]
    try:
        figures = compute(run, batch, config, momentum)
    except RuntimeError:
        for module, name, tensor in before:
            module._buffers[name] = tensor
        raise
    for module, name, tensor in before:
        new = module._buffers[name]
        if tensor is not None and new is not None and new is not tensor:
            module._buffers[name] = tensor.copy_(new)
    return figures


def _refusal(run: TrainingState, config: TrainingConfig, pad_id: int, *, captures: bool) -> str:
    """Return why a run's steps cannot have static shapes; empty if they can."""
    objective = run.objective
    kind = type(objective).__name__
    if objective.reads_tokens:
        return f"{kind} {objective.reads_tokens}"
    if unread := sorted(name for name in config.objective.needs if not COLUMNS[name].on_device):
        return f"{kind} reads {', '.join(unread)} on the CPU"
    if not objective.online.supports_packing(pad_id):
        return f"{objective.online.config.model} cannot run without padding"
    if processes() > 1:
        return "several processes share each batch"
    if not captures:
        return ""
    if objective.counts_tokens:
        return f"{kind} counts tokens on the CPU"
    if not config.bias_correction:
        return "Adam without bias correction has another epsilon at each step"
    first = objective.momentum(1, run.total)
    if any(objective.momentum(step, run.total) != first for step in range(2, run.total + 1)):
        return "the target's momentum changes at each step"
    return ""


def choose_shapes(data: TokenCache, order: BatchOrder, steps: int, pairs: int) -> tuple[Shape, ...]:
    """Return at most `MAX_SHAPES` shapes for the first steps of a run, smallest first.

    Args:
        data: Tokens of each pair.
        order: Rows of each step.
        steps: Number of steps of the run.
        pairs: Batch size; smaller batches get no shape.
    """
    sampled = min(steps, max(MAX_SHAPES, SAMPLED // pairs))
    batches = (order.rows(step) for step in range(1, sampled + 1))
    lengths = [data.view_lengths(rows) for rows in batches if len(rows) == pairs]
    if not lengths:
        return ()
    views_S2 = np.array([lengths_B2.sum(axis=0) for lengths_B2 in lengths])
    longest_S = np.array([lengths_B2.max() for lengths_B2 in lengths])
    totals_S = views_S2.sum(axis=1)
    sizes = least_waste(totals_S, MAX_SHAPES, MULTIPLE)
    class_S = np.searchsorted(sizes, totals_S)
    shapes = []
    for number, size in enumerate(sizes):
        of_class = class_S == number
        first, second = (int(view) for view in _raised(views_S2[of_class].max(axis=0), MULTIPLE))
        shapes.append(Shape(size, (first, second), int(_raised(longest_S[of_class].max(), MULTIPLE))))
    return tuple(shapes)


def least_waste(lengths: NDArray[np.int64], most: int, multiple: int) -> tuple[int, ...]:
    """Return at most `most` sizes, ascending, that minimise the total padding of the lengths.

    The result is exact, by dynamic programming over the distinct lengths.

    Args:
        lengths: At least one, each above 0.
        most: Largest number of sizes.
        multiple: Every size is a multiple of this.
    """
    sizes_M, counts_M = np.unique(_raised(lengths, multiple), return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts_M)])
    # (i, j): tokens if sizes i to j − 1 are all padded to the largest of them.
    covered = np.full((len(sizes_M), len(sizes_M) + 1), np.inf)
    for first in range(len(sizes_M)):
        covered[first, first + 1 :] = sizes_M[first:] * (below[first + 1 :] - below[first])
    best, starts = np.append(0.0, np.full(len(sizes_M), np.inf)), []
    for _ in range(min(most, len(sizes_M))):
        costs = best[:-1, None] + covered
        starts.append(costs.argmin(axis=0))
        best = costs.min(axis=0)
    chosen, end = [], len(sizes_M)
    for start in reversed(starts):
        chosen.append(int(sizes_M[end - 1]))
        end = int(start[end])
    return tuple(reversed(chosen))


def _raised(values: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Round each value up to a multiple."""
    return -(-values // multiple) * multiple
