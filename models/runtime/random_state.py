"""Seed, save and restore the random generators that training uses: the global ones of torch and numpy.

These generators are process-wide: do not seed them from two threads at once.

Python's own generator is not included. Training does not draw from it, but other threads do (Prefect jitters its
pauses), so its saved state would differ between equal runs.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

RngState = dict[str, torch.Tensor]

_turn = threading.RLock()


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed numpy and torch inside the `with` block, and restore the caller's generators afterwards.

    Blocks of other threads wait until this one has ended. So trainings in threads of one process, as on a Dask worker
    with several threads, draw the same numbers as each would alone.
    """
    with _turn:
        before = capture_rng()
        np.random.seed(seed)  # noqa: NPY002  libraries below may draw from the global generator
        torch.manual_seed(seed)
        try:
            yield
        finally:
            restore_rng(before)


def capture_rng() -> RngState:
    """Return the state of all generators as tensors, ready for safetensors."""
    state: dict[str, Any] = np.random.get_state(legacy=False)  # noqa: NPY002
    out = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(state["state"]["key"].astype(np.int64)),
        "numpy_place": torch.tensor([state["state"]["pos"], state["has_gauss"]], dtype=torch.int64),
        "numpy_gauss": torch.tensor([state["gauss"]], dtype=torch.float64),
    }
    for number in range(torch.cuda.device_count()):
        out[f"cuda_{number}"] = torch.cuda.get_rng_state(number)
    return out


def restore_rng(state: RngState) -> None:
    """Restore all generators to a captured state; generators of GPUs that it does not contain are not changed."""
    position, has_gauss = state["numpy_place"].tolist()
    np.random.set_state(  # noqa: NPY002
        {
            "bit_generator": "MT19937",
            "state": {"key": state["numpy"].numpy().astype(np.uint32), "pos": position},
            "has_gauss": has_gauss,
            "gauss": float(state["numpy_gauss"][0]),
        }
    )
    torch.set_rng_state(state["torch"])
    for number in range(torch.cuda.device_count()):
        if f"cuda_{number}" in state:
            torch.cuda.set_rng_state(state[f"cuda_{number}"], number)
