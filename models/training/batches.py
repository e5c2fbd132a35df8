"""Pairs as tokens, and which of them form the batch of a step.

The order is a function of seed, epoch and step alone, so a resumed run needs no iterator state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.encoder.tokens import Tokens, tokenise
from models.errors import TrainingError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.training.config import TrainingConfig

VIEWS = ("text_1", "text_2")


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
    missing = [name for name in VIEWS if name not in pairs.columns]
    if missing:
        raise TrainingError(f"the pairs have columns {pairs.columns}, expected {list(VIEWS)}; pair the views first")
    for name in VIEWS:
        if pairs[name].null_count():
            row = pairs[name].is_null().arg_max()
            raise TrainingError(f"{name} of pair {row} is null, expected a text; drop incomplete pairs before training")
    both = pl.concat([pairs[name].rename("text") for name in VIEWS]).to_frame()
    unique = both.unique(maintain_order=True).with_row_index("number")
    numbers = both.join(unique, on="text", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)
    tokens = tokenise(tokenizer, unique["text"].to_list(), max_length)
    return TokenPairs(tokens, numbers[: len(pairs)], numbers[len(pairs) :])


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
    """Rows of each step: a new seeded permutation every epoch, incomplete last batches dropped."""

    def __init__(self, pairs: int, config: TrainingConfig) -> None:
        self._pairs, self._size, self._seed = pairs, config.batch_size, config.seed
        self._epoch = -1
        self._permutation: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def rows(self, step: int) -> NDArray[np.int64]:
        """Rows (batch_size,) of optimizer step `step`, counted from 1."""
        epoch, place = divmod(step - 1, self._pairs // self._size)
        if epoch != self._epoch:
            self._epoch, self._permutation = epoch, permutation(self._pairs, self._seed, epoch)
        return self._permutation[place * self._size : (place + 1) * self._size]


def permutation(n: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order of n pairs in an epoch (from 0): PCG64 seeded with both numbers, stable over machines."""
    return np.random.Generator(np.random.PCG64([seed, epoch])).permutation(n)
