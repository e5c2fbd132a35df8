"""Arrays on their way to the device that computes and back, while it computes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


def uploaded(array: NDArray[np.generic] | torch.Tensor, device: torch.device) -> torch.Tensor:
    """An array as a tensor on a device, without waiting for what the device is busy with.

    From memory that the system may move, a copy to a GPU waits until all that was asked of the GPU before is done.
    """
    tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(array)
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def wait(device: torch.device) -> None:
    """Return once the device has done all work that was queued on it; before a clock is read, for example."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Download:
    """A tensor on its way from the device; the copy is asked for at once, and waited for when it is read."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._done = tensor, None
        if tensor.device.type == "cuda":
            self._tensor = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._tensor.copy_(tensor, non_blocking=True)
            self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._done.record()

    def numpy(self) -> NDArray[np.float32]:
        """The numbers, once they are there."""
        if self._done is not None:
            self._done.synchronize()
        array: NDArray[np.float32] = self._tensor.numpy()
        return array


def one_ahead(items: Iterable[T]) -> Iterator[T]:
    """The items, each once the next one is made: a device has its next work before the result of the last is read."""
    return (item for item, _ in itertools.pairwise(itertools.chain(items, (None,))) if item is not None)
