"""Several processes train one model, each with its share of every batch (see `models.runtime.device`).

All hold all weights, take the same steps and move the same target; the first evaluates and saves. They may be on
several machines: what lies in files is made once on each, and what the first one saved is told to the others.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import torch
from torch import distributed

from models.runtime.device import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from models.objectives.objective import Objective

T = TypeVar("T")


@contextlib.contextmanager
def joined(device: str) -> Iterator[str]:
    """Join the processes that torchrun started, for the block; yields this one's device.

    Args:
        device: `cpu`, or `cuda` for one GPU a process.
    """
    gpus = device.startswith("cuda")
    # Gloo beside NCCL: the processes agree on stopping without making the GPUs wait.
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


def is_first_here() -> bool:
    """Whether this process is the first one of its machine."""
    return processes() == 1 or os.environ["LOCAL_RANK"] == "0"


@contextlib.contextmanager
def first_here_alone() -> Iterator[None]:
    """Let the first process of each machine do the block (which leaves a file, say) before the others do."""
    if not is_first_here():
        distributed.barrier()
    yield
    if processes() > 1 and is_first_here():
        distributed.barrier()


def from_first(make: Callable[[], T]) -> T:
    """What the first process makes, in all of them."""
    box = [make() if is_first() else None]
    if processes() > 1:
        distributed.broadcast_object_list(box)
    return cast("T", box[0])


def any_says(yes: bool) -> bool:
    """Whether any of the processes says yes; all must ask."""
    if processes() == 1:
        return yes
    votes = torch.tensor([int(yes)])
    distributed.all_reduce(votes, distributed.ReduceOp.MAX)
    return bool(votes)


def seed_step(seed: int, step: int) -> None:
    """Give each process its own dropout, decided by seed, step and rank, so that nothing of it need be saved.

    A process that is alone draws from one stream through the whole run, which its snapshots hold.
    """
    if processes() > 1:
        entropy = np.random.SeedSequence([seed, step, distributed.get_rank()])
        torch.manual_seed(int(entropy.generate_state(1, np.uint64)[0]))


def agree_on_gradients(objective: Objective, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Sum the gradients of data-parallel modules, whose batch is shared out; average the others, which are equal."""
    if processes() == 1:
        return
    shared = {id(p) for part in objective.data_parallel for p in getattr(objective, part).parameters()}
    learning = [p for p in parameters if p.grad is not None]
    flat = torch.cat([p.grad.flatten() for p in learning if p.grad is not None])
    distributed.all_reduce(flat)
    for p, total in zip(learning, torch.split(flat, [p.numel() for p in learning]), strict=True):
        # Averaged although equal: what rounds differently on another machine must not drift apart.
        p.grad = (total if id(p) in shared else total / processes()).view_as(p)
