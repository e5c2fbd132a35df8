"""Simulate one process of several without the others; communication is a no-op."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore


@contextmanager
def as_process(rank: int, of: int) -> Iterator[None]:
    distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=of)
    try:
        yield
    finally:
        distributed.destroy_process_group()
