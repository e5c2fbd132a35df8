"""Sentences end to end, and how their tokens become padded rows and back.

On a CPU a group of them holds sentences of one length and needs neither padding nor mask; a GPU gets one padded group,
because many small kernels cost it more than padding inside attention.

Shapes: B sentences, T tokens of the longest, N tokens of all.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from models.transfer import uploaded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.encoder.tokens import Tokens


@dataclass(frozen=True)
class Padding:
    """How tokens end to end become padded rows and back.

    Attributes:
        real: (B, T), True for tokens, False for padding.
        places: (N,), where each token stands among the B·T.
    """

    real: torch.Tensor
    places: torch.Tensor

    def pad(self, x_NX: torch.Tensor) -> torch.Tensor:
        """(N, …) to (B, T, …), zeros where there is no token."""
        # Places instead of the mask: a mask as index would make a GPU wait for its count.
        flat = x_NX.new_zeros((self.real.numel(), *x_NX.shape[1:])).index_copy(0, self.places, x_NX)
        return torch.unflatten(flat, 0, self.real.shape)

    def strip(self, x_BTX: torch.Tensor) -> torch.Tensor:
        """(B, T, …) to (N, …)."""
        return x_BTX.flatten(0, 1).index_select(0, self.places)


@dataclass(frozen=True)
class Group:
    """Sentences that attend together: how many, their tokens, and their padding unless all are of one length."""

    sentences: int
    tokens: int
    padding: Padding | None


@dataclass(frozen=True)
class Layout:
    """Sentences end to end, longest first.

    Attributes:
        order: (B,) which of the given rows stands where.
        ids: (1, N), token ids.
        positions: (1, N), 0, 1, 2, … from the start of each sentence.
        sentences: (N,), which of them each token is of.
        padding: For the token vectors that pooling sees.
        groups: Covering all sentences in order.
        causal: Whether a token attends to itself and those before it alone.
    """

    order: NDArray[np.int64]
    ids: torch.Tensor
    positions: torch.Tensor
    sentences: torch.Tensor
    padding: Padding
    groups: tuple[Group, ...]
    causal: bool = False


def lay_out(
    tokens: Tokens, rows: NDArray[np.int64], device: torch.device, *, by_length: bool, causal: bool = False
) -> Layout:
    """The layout of some rows on a device; sentences of one length attend together, or all, padded, at once."""
    order = np.argsort(-tokens.lengths_of(rows), kind="stable")
    some = tokens.take(rows[order])
    positions = np.arange(len(some.ids)) - np.repeat(some.offsets[:-1], some.lengths)
    padding = _padding(some.lengths, device)
    return Layout(
        order,
        uploaded(some.ids.astype(np.int64), device)[None],
        uploaded(positions, device)[None],
        uploaded(np.repeat(np.arange(len(some)), some.lengths), device),
        padding,
        _groups_by_length(some) if by_length else (Group(len(some), len(some.ids), padding),),
        causal,
    )


def _groups_by_length(some: Tokens) -> tuple[Group, ...]:
    cuts = np.flatnonzero(np.diff(some.lengths)) + 1
    bounds = [0, *cuts.tolist(), len(some)]
    return tuple(
        Group(high - low, int(some.offsets[high] - some.offsets[low]), None) for low, high in itertools.pairwise(bounds)
    )


def _padding(lengths: NDArray[np.int64], device: torch.device) -> Padding:
    real_BT = np.arange(int(lengths.max())) < lengths[:, None]
    places_N = np.flatnonzero(real_BT)
    return Padding(uploaded(real_BT, device), uploaded(places_N, device))
