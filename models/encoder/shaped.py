"""Concatenated sentences in a row of fixed length, so that every batch has the same shapes (for CUDA graphs).

A CUDA graph replays thousands of kernels in one launch, but only on the shapes and the memory of its capture. Padding
tokens fill the rest of the row. In attention they form separate sentences, or take padding positions of shorter
sentences, so no sentence attends to them and they have no gradient.

Shapes: R rows, T tokens of the longest sentence, N positions of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bsl.models.encoder.layouts import Group, Layout, Padding, Tokens
from bsl.models.runtime.device import uploaded

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Shape:
    """Fixed token counts of a batch of pairs; positions that the batch does not use are padding.

    Attributes:
        tokens: Tokens of both views together.
        views: Tokens of all first views, and of all second views.
        longest: Tokens of the longest sentence.
    """

    tokens: int
    views: tuple[int, int]
    longest: int

    def fits(self, lengths_B2: NDArray[np.int64]) -> bool:
        """Return whether a batch fits; `lengths_B2` has the token counts of both views of each pair."""
        within = lengths_B2.sum() <= self.tokens and lengths_B2.max() <= self.longest
        return bool(within and (lengths_B2.sum(axis=0) <= self.views).all())

    def places(self, rows: NDArray[np.int64], pairs: int) -> int:
        """Return the length of the row for `rows`: all first views, all second views, or both, each once or more."""
        first, second = (int(np.sum(in_view)) // pairs for in_view in (rows < pairs, rows >= pairs))
        return self.tokens if first == second == 1 else first * self.views[0] + second * self.views[1]


class FixedLayouts:
    """Layouts of a batch of pairs in tensors that are allocated once and refilled for each batch.

    Args:
        shape: Shape of every batch.
        pairs: Number of pairs of every batch; sentence numbers below it are first views.
        device: Device of the tensors.
    """

    def __init__(self, shape: Shape, pairs: int, device: torch.device) -> None:
        self._shape, self._pairs, self._device = shape, pairs, device
        self._layouts: dict[bytes, tuple[NDArray[np.int64], dict[str, torch.Tensor], Layout]] = {}

    def of(self, tokens: Tokens, rows: NDArray[np.int64]) -> Layout:
        """Return the layout of some rows; created on the first call, later filled by `fill`."""
        key = rows.tobytes()
        if key not in self._layouts:
            arrays = self._arrays(tokens, rows)
            tensors = {name: uploaded(array, self._device) for name, array in arrays.items()}
            self._layouts[key] = rows, tensors, _layout(tensors)
        return self._layouts[key][2]

    def fill(self, tokens: Tokens) -> ShapedTokens:
        """Copy another batch's sentences into all layouts, without waiting for the device."""
        for rows, tensors, _ in self._layouts.values():
            for name, array in self._arrays(tokens, rows).items():
                tensors[name].copy_(uploaded(array, self._device))
        return ShapedTokens(tokens.ids, tokens.offsets, tokens.pad_id, self)

    def _arrays(self, tokens: Tokens, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        selected, length = tokens.take(rows), self._shape.places(rows, self._pairs)
        padding = length - len(selected.ids)
        # The padding as sentences no longer than the longest; the last ones are empty, since their number is fixed.
        ends = len(selected.ids) + self._shape.longest * np.arange(1, 1 - -length // self._shape.longest)
        real_RT = np.arange(self._shape.longest) < selected.lengths[:, None]
        positions = np.arange(len(selected.ids)) - np.repeat(selected.offsets[:-1], selected.lengths)
        return {
            "ids": np.append(selected.ids, np.full(padding, tokens.pad_id)).astype(np.int64),
            "positions": np.append(positions, np.zeros(padding, dtype=np.int64)),
            "sentences": np.append(np.repeat(np.arange(len(rows)), selected.lengths), np.full(padding, len(rows))),
            "bounds": np.append(selected.offsets, np.minimum(ends, length)).astype(np.int32),
            "real": real_RT,
            "places": np.append(np.flatnonzero(real_RT), np.flatnonzero(~real_RT)[:padding]),
        }


@dataclass(frozen=True)
class ShapedTokens(Tokens):
    """Tokens of a batch whose layouts have a fixed shape.

    Attributes:
        layouts: Layouts filled with these sentences.
    """

    layouts: FixedLayouts

    def layout(self, rows: NDArray[np.int64]) -> Layout:
        """Return the layout of some rows, in their order."""
        return self.layouts.of(self, rows)


def _layout(tensors: dict[str, torch.Tensor]) -> Layout:
    """Return a layout of views of the tensors, which later changes of the tensors change too."""
    padding = Padding(tensors["real"], tensors["places"])
    count = len(padding.real)
    groups = (Group(count, len(padding.places), padding),)
    ids, positions = tensors["ids"][None], tensors["positions"][None]
    return Layout(np.arange(count), ids, positions, tensors["sentences"], tensors["bounds"], padding, groups)
