"""Data-parallel training: several processes, each with its share of every batch (see `bsl.models.runtime.device`).

Every process has all weights, takes the same steps and moves the same target; the first evaluates and saves. On several
machines, each machine makes its own token files; the first process broadcasts the snapshot that it loads.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import torch
from torch import distributed

from bsl.models.runtime.device import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bsl.models.objectives.objective import Objective

T = TypeVar("T")


@contextlib.contextmanager
def joined(device: str) -> Iterator[str]:
    """Join the processes that torchrun started for the `with` block, and yield this process's device.

    Args:
        device: `cpu`, or `cuda` for one GPU per process.
    """
    gpus = device.startswith("cuda")
    # Gloo in addition to NCCL, so that the processes agree on stopping without making the GPUs wait.
    distributed.init_process_group("cpu:gloo,cuda:nccl" if gpus else "gloo")
    if gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    try:
        yield f"cuda:{os.environ['LOCAL_RANK']}" if gpus else device
    finally:
        distributed.destroy_process_group()


def is_first() -> bool:
    """Whether this process evaluates, saves and reports."""
    return processes() == 1 or distributed.get_rank() == 0


@contextlib.contextmanager
def local_rank_zero_first() -> Iterator[None]:
    """Let the first process of each machine run the block, such as writing a file, before the others run it."""
    is_first_of_machine = processes() == 1 or os.environ["LOCAL_RANK"] == "0"
    if not is_first_of_machine:
        distributed.barrier()
    yield
    if processes() > 1 and is_first_of_machine:
        distributed.barrier()


def from_first(make: Callable[[], T]) -> T:
    """Call `make` in the first process and return its result in all processes."""
    box = [make() if is_first() else None]
    if processes() > 1:
        distributed.broadcast_object_list(box)
    return cast("T", box[0])


def any_process(yes: bool) -> bool:
    """Return whether any process passes True; all processes must call this."""
    if processes() == 1:
        return yes
    votes = torch.tensor([int(yes)])
    distributed.all_reduce(votes, distributed.ReduceOp.MAX)
    return bool(votes)


def seed_step(seed: int, step: int) -> None:
    """Seed each process's dropout by seed, step and rank, so that snapshots need no generator of the other processes.

    A single process draws from one stream through the whole run, and its snapshots contain that stream's state.
    """
    if processes() > 1:
        entropy = np.random.SeedSequence([seed, step, distributed.get_rank()])
        torch.manual_seed(int(entropy.generate_state(1, np.uint64)[0]))


def all_reduce_gradients(objective: Objective, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Sum the gradients of data-parallel modules over the processes, and average the others, which are equal."""
    if processes() == 1:
        return
    shared = {id(p) for part in objective.data_parallel for p in getattr(objective, part).parameters()}
    learning = [p for p in parameters if p.grad is not None]
    flat = torch.cat([p.grad.flatten() for p in learning if p.grad is not None])
    distributed.all_reduce(flat)
    for p, total in zip(learning, torch.split(flat, [p.numel() for p in learning]), strict=True):
        # Averaged although equal: different rounding on another machine must not make the weights drift apart.
        p.grad = (total if id(p) in shared else total / processes()).view_as(p)
