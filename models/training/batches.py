"""Pairs as tokens, and which of them form the batch of a step.

The order is a function of seed, epoch and step alone, so a resumed run needs no iterator state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from models.encoder.tokens import Tokens, tokenise
from models.errors import TrainingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.training.config import TrainingConfig

VIEWS = ("text_1", "text_2")
LengthsOf: TypeAlias = "Callable[[NDArray[np.int64]], NDArray[np.int64]]"  # rows → tokens of each


@dataclass(frozen=True)
class TokenPairs:
    """Training pairs over a table of unique sentences.

    Attributes:
        tokens: Every different sentence once.
        view_1: (n,) sentence number of each pair's first view.
        view_2: (n,) sentence number of each pair's second view.
    """

    tokens: Tokens
    view_1: NDArray[np.int64]
    view_2: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.view_1)


def tokenise_pairs(tokenizer: PreTrainedTokenizerBase, pairs: pl.DataFrame, max_length: int) -> TokenPairs:
    """Tokenise every different text of the pairs once.

    Args:
        tokenizer: The encoder's own.
        pairs: Columns `text_1` and `text_2`; others are ignored.
        max_length: Tokens kept of a text.

    Raises:
        TrainingError: A column is missing or holds nulls.
    """
    check_pairs(pairs)
    both = pl.concat([pairs[name].rename("text") for name in VIEWS]).to_frame()
    unique = both.unique(maintain_order=True).with_row_index("number")
    numbers = both.join(unique, on="text", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)
    tokens = tokenise(tokenizer, unique["text"].to_list(), max_length)
    return TokenPairs(tokens, numbers[: len(pairs)], numbers[len(pairs) :])


def check_pairs(pairs: pl.DataFrame, first_row: int = 0) -> None:
    """Refuse pairs without both texts.

    Args:
        pairs: Some rows.
        first_row: Number of the first of them, for the message.

    Raises:
        TrainingError: A column is missing or holds nulls.
    """
    missing = [name for name in VIEWS if name not in pairs.columns]
    if missing:
        raise TrainingError(f"the pairs lack {missing}, expected columns {list(VIEWS)}; pair the views first")
    for name in VIEWS:
        if pairs[name].null_count():
            row = first_row + (pairs[name].is_null().arg_max() or 0)
            raise TrainingError(f"{name} of pair {row} is null, expected a text; drop incomplete pairs before training")


def count_steps(pairs: int, config: TrainingConfig) -> int:
    """Optimizer steps of the run: full batches of every epoch, at most `max_steps`.

    Raises:
        TrainingError: Not even one full batch.
    """
    per_epoch = pairs // config.batch_size
    if per_epoch == 0:
        raise TrainingError(
            f"{pairs} pairs are less than one batch of {config.batch_size}; give more pairs or a smaller batch"
        )
    steps = per_epoch * config.epochs
    return steps if config.max_steps is None else min(steps, config.max_steps)


class BatchOrder:
    """Rows of each step: a new seeded permutation every epoch, incomplete last batches dropped.

    With `length_buckets` the pairs of so many batches in a row are shared out by length, and the batches shuffled.
    """

    def __init__(self, pairs: int, config: TrainingConfig, lengths_of: LengthsOf) -> None:
        self._size, self._seed, self._lengths_of = config.batch_size, config.seed, lengths_of
        self._pairs, self._per_epoch = pairs, pairs // config.batch_size
        self._bucket_size = config.length_buckets or 1
        self._epoch, self._bucket = -1, -1
        self._permutation: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._batches: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)

    def rows(self, step: int) -> NDArray[np.int64]:
        """Rows (batch_size,) of optimizer step `step`, counted from 1."""
        epoch, place = divmod(step - 1, self._per_epoch)
        bucket, within = divmod(place, self._bucket_size)
        if epoch != self._epoch:
            self._permutation = permutation(self._pairs, self._seed, epoch)
        if (epoch, bucket) != (self._epoch, self._bucket):
            self._epoch, self._bucket, self._batches = epoch, bucket, self._make_bucket(epoch, bucket)
        rows: NDArray[np.int64] = self._batches[within]
        return rows

    def _make_bucket(self, epoch: int, bucket: int) -> NDArray[np.int64]:
        first = bucket * self._bucket_size
        count = min(self._bucket_size, self._per_epoch - first)
        rows = self._permutation[first * self._size : (first + count) * self._size]
        if count == 1:
            return rows.reshape(1, -1)
        batches = rows[np.argsort(self._lengths_of(rows), kind="stable")].reshape(count, self._size)
        return np.take(batches, permutation(count, self._seed, epoch, bucket), axis=0)


def permutation(n: int, *seed: int) -> NDArray[np.int64]:
    """An order of n things: PCG64 seeded with all numbers (seed, epoch, …), stable over machines."""
    return np.random.Generator(np.random.PCG64(seed)).permutation(n)
