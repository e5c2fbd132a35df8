"""Batches of like length: no padding to speak of, a bounded number of tokens each, random order."""

from __future__ import annotations

import numpy as np


def length_batches(
    lengths: np.ndarray, tokens: int, generator: np.random.Generator, window: int = 12_000
) -> list[np.ndarray]:
    """Cut examples into batches of at most `tokens` padded tokens.

    Args:
        lengths: (N,) tokens of each example.
        tokens: Most padded tokens of a batch; a longer example stands alone.
        generator: Decides the order of examples and of batches.
        window: Examples that are sorted together; smaller is more random, larger pads less.

    Returns:
        Arrays of example numbers; together they hold each example once.
    """
    order = generator.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for start in range(0, len(order), window):
        part = order[start : start + window]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches.extend(_cut(part, lengths, tokens))
    return [batches[i] for i in generator.permutation(len(batches))]


def _cut(part: np.ndarray, lengths: np.ndarray, tokens: int) -> list[np.ndarray]:
    cuts: list[np.ndarray] = []
    first = 0
    for last in range(len(part)):
        if last > first and (last - first + 1) * lengths[part[last]] > tokens:
            cuts.append(part[first:last])
            first = last
    if first < len(part):
        cuts.append(part[first:])
    return cuts


def pad(rows: list[np.ndarray], value: int) -> np.ndarray:
    """Rows of unequal length as one (rows, longest) matrix, filled up with `value` on the right."""
    matrix = np.full((len(rows), max(len(row) for row in rows)), value, dtype=np.int64)
    for number, row in enumerate(rows):
        matrix[number, : len(row)] = row
    return matrix
