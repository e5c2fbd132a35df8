"""Seeding, saving and restoring every random generator that training may touch: torch's and numpy's global one.

They are the process's, so of several threads that want them seeded one has them at a time.

Python's own is left alone. Nothing below draws from it, and threads of an orchestrator beside the training do (Prefect
jitters its pauses), so that saved it would differ between equal runs.
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
    """Seed numpy and torch for the block; afterwards the caller's generators go on as if nothing happened.

    A block of another thread begins when this one has ended: trainings that are threads of one process, as on a worker
    of Dask that has several, draw what each would draw alone.
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
    """The state of all generators as tensors, ready for safetensors."""
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
    """Put all generators back to a captured state; GPUs that the state does not know keep theirs."""
    place, has_gauss = state["numpy_place"].tolist()
    np.random.set_state(  # noqa: NPY002
        {
            "bit_generator": "MT19937",
            "state": {"key": state["numpy"].numpy().astype(np.uint32), "pos": place},
            "has_gauss": has_gauss,
            "gauss": float(state["numpy_gauss"][0]),
        }
    )
    torch.set_rng_state(state["torch"])
    for number in range(torch.cuda.device_count()):
        if f"cuda_{number}" in state:
            torch.cuda.set_rng_state(state[f"cuda_{number}"], number)
