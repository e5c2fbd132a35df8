"""Tokenise and check training pairs, and choose the pairs of each step's batch.

The order depends on seed, epoch and step alone, so a resumed run needs no iterator state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import polars as pl

from bsl.models.errors import NoEmbeddingError, TrainingError
from bsl.models.objectives.objective import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.objectives.columns import Column
    from bsl.models.training.config import TrainingConfig

TEXTS = ("text_1", "text_2")
FEWEST: Final = 2  # pairs in a batch
LengthsOf: TypeAlias = "Callable[[NDArray[np.int64]], NDArray[np.int64]]"  # rows → tokens of each


def tokenise_pairs(encoder: SentenceEncoder, pairs: pl.DataFrame, first_row: int = 0) -> Batch:
    """Return the texts of some pairs as one batch, with each distinct text tokenised once.

    Args:
        encoder: Provides tokenizer, prompt and maximal length.
        pairs: Columns `text_1` and `text_2`; others are ignored.
        first_row: Row number of the first pair, for messages.

    Raises:
        TrainingError: A column is missing or contains nulls, or a text has no token.
    """
    check_pairs(pairs)
    both = pl.concat([pairs[name].rename("text") for name in TEXTS]).to_frame()
    unique = both.unique(maintain_order=True).with_row_index("number")
    numbers = both.join(unique, on="text", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)
    try:
        tokens = encoder.tokenize(unique["text"].to_list())
    except NoEmbeddingError as error:
        column, row = divmod(int((numbers == error.number).argmax()), len(pairs))
        raise TrainingError(f"{TEXTS[column]} of pair {first_row + row} {error.reason}") from error
    return Batch(tokens, numbers[: len(pairs)], numbers[len(pairs) :])


def check_pairs(
    pairs: pl.DataFrame,
    first_row: int = 0,
    needs: frozenset[Column] = frozenset(),
    nullable: frozenset[Column] = frozenset(),
) -> None:
    """Refuse pairs without both texts, or without a column that the objective needs.

    Args:
        pairs: Some rows.
        first_row: Row number of the first pair, for the message.
        needs: Columns that the objective needs besides the texts.
        nullable: Those of them that may contain nulls.

    Raises:
        TrainingError: A column is missing or contains nulls that it may not contain, or a score is not in [0, 1].
    """
    missing = [name for name in TEXTS if name not in pairs.columns]
    if missing:
        raise TrainingError(f"the pairs lack the columns {missing}, expected {list(TEXTS)}. Pair the views first.")
    for name in TEXTS:
        if (row := _first(pairs[name].is_null())) is not None:
            raise TrainingError(
                f"{name} of pair {first_row + row} is null, expected a text. Drop incomplete pairs before training."
            )
    for name in sorted(needs):
        _check_column(pairs, name, first_row, nullable=name in nullable)


def _check_column(pairs: pl.DataFrame, name: Column, first_row: int, *, nullable: bool) -> None:
    absent = pairs[name].is_null() & (not nullable) if name in pairs.columns else pl.Series([True])
    if (row := _first(absent)) is not None:
        state = "null" if name in pairs.columns else "missing"
        raise TrainingError(
            f"{name} of pair {first_row + row} is {state}, but the objective or the order needs it. Give every "
            f"pair a {name}, or choose another objective or order."
        )
    if name == "score" and (row := _first(~pairs[name].is_between(0, 1))) is not None:
        raise TrainingError(
            f"score of pair {first_row + row} is {pairs[name][row]}, expected 0 to 1. Divide all scores by the largest "
            "score of the scale."
        )


def _first(bad: pl.Series) -> int | None:
    return bad.arg_max() if bad.any() else None


def steps_per_epoch(pairs: int, config: TrainingConfig) -> int:
    """Return the number of batches in an epoch: all full ones, and the smaller last one unless it is dropped.

    Deviation: a batch has at least two pairs. One pair has no negatives and no statistics, and batch normalisation
    refuses it.

    Raises:
        TrainingError: The pairs do not fill one batch.
    """
    full, remainder = divmod(pairs, config.batch_size)
    steps = full + (remainder >= FEWEST and not config.drop_last)
    if steps == 0:
        raise TrainingError(
            f"{pairs} pairs, expected at least one batch of {config.batch_size}. Give more pairs, or lower "
            "training.batch_size."
        )
    return steps


def count_steps(pairs: int, config: TrainingConfig) -> int:
    """Return the number of optimizer steps of the run: the batches of all epochs, at most `max_steps`.

    Raises:
        TrainingError: The pairs do not fill one batch.
    """
    steps = steps_per_epoch(pairs, config) * config.epochs
    return steps if config.max_steps is None else min(steps, config.max_steps)


class BatchOrder:
    """Rows of each step: every epoch orders all rows and cuts them into batches.

    `random` is a new seeded permutation each epoch. With `length_buckets`, the pairs of that many consecutive batches
    are sorted by length, cut into batches again, and the batches shuffled. `groups` permutes whole groups and cuts only
    between them: a batch ends with the last group that fits into the pairs of all batches so far. So there are as many
    batches as with random pairs. A group larger than a batch is cut into pieces of a batch. `given` is the order of the
    rows. No batch has a single pair: at the end of an epoch the pair is dropped, or with groups joins the batch before.

    Args:
        pairs: Number of pairs.
        config: Batch size, seed and kind of order.
        lengths_of: Rows → tokens of each row, for buckets.
        groups: (pairs,) each pair's group, for the order `groups`.

    Raises:
        TrainingError: The pairs do not fill one batch.
    """

    def __init__(
        self, pairs: int, config: TrainingConfig, lengths_of: LengthsOf, groups: NDArray[np.uint64] | None = None
    ) -> None:
        self._size, self._seed, self._lengths_of = config.batch_size, config.seed, lengths_of
        self._pairs, self._per_epoch = pairs, steps_per_epoch(pairs, config)
        self._bucket_size = config.length_buckets or 1
        self._given, self._drops = config.order == "given", config.drop_last
        self._pieces = None if groups is None or config.order != "groups" else _pieces(groups, self._size)
        self._epoch, self._bucket = -1, -1
        self._rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._cuts: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._batches: list[NDArray[np.int64]] = []

    def rows(self, step: int) -> NDArray[np.int64]:
        """Return the rows of optimizer step `step` (1-based).

        These are `batch_size` rows, about as many with whole groups, and fewer in a smaller last batch.
        """
        epoch, number = divmod(step - 1, self._per_epoch)
        bucket, within = divmod(number, self._bucket_size)
        if epoch != self._epoch:
            self._rows, self._cuts = self._order(epoch)
        if (epoch, bucket) != (self._epoch, self._bucket):
            self._epoch, self._bucket, self._batches = epoch, bucket, self._make_bucket(epoch, bucket)
        return self._batches[within]

    def _order(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of an epoch and the bounds of its batches."""
        even = np.minimum(np.arange(self._per_epoch + 1) * self._size, self._pairs)
        if self._given:
            return np.arange(self._pairs), even
        if self._pieces is None:
            return permutation(self._pairs, self._seed, epoch), even
        rows, starts = self._pieces
        order = permutation(len(starts) - 1, self._seed, epoch)
        order = order[_no_row_alone(np.diff(starts)[order], self._size)]
        sizes = np.diff(starts)[order]
        if not self._drops:
            even[-1] = self._pairs
        ends = np.concatenate([[0], np.cumsum(sizes)])
        permuted = rows[np.repeat(starts[order] - ends[:-1], sizes) + np.arange(len(rows))]
        return permuted, ends[np.searchsorted(ends, even, side="right") - 1]

    def _make_bucket(self, epoch: int, bucket: int) -> list[NDArray[np.int64]]:
        first = bucket * self._bucket_size
        count = min(self._bucket_size, self._per_epoch - first)
        rows = self._rows[self._cuts[first] : self._cuts[first + count]]
        if count == 1:
            return [rows]
        by_length = rows[np.argsort(self._lengths_of(rows), kind="stable")]
        batches = np.split(by_length, range(self._size, len(rows), self._size))
        return [batches[number] for number in permutation(count, self._seed, epoch, bucket)]


def _pieces(groups: NDArray[np.uint64], largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows sorted by group, and the start of each piece of at most `largest` rows, with the end appended.

    Rows of a group keep their order.
    """
    rows = np.argsort(groups, kind="stable")
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(groups[rows])) + 1, [len(rows)]])
    within = np.arange(len(rows)) - np.repeat(firsts[:-1], np.diff(firsts))
    return rows, np.append(np.flatnonzero(within % largest == 0), len(rows))


def _no_row_alone(sizes: NDArray[np.int64], largest: int) -> NDArray[np.int64]:
    """Return an order of pieces, given their sizes, in which no piece of one row becomes a batch alone.

    That happens only to a piece that starts at a batch boundary before pieces that fill a batch. It moves behind them;
    all other pieces keep their order.
    """
    full = sizes == largest
    alone = np.flatnonzero((sizes < FEWEST) & ((np.cumsum(sizes) - sizes) % largest == 0) & np.append(full[1:], False))
    others = np.append(np.flatnonzero(~full), len(sizes))
    keys = np.arange(len(sizes), dtype=np.float64)
    keys[alone] = others[np.searchsorted(others, alone, side="right")] - 0.5
    return np.argsort(keys)


def permutation(n: int, *seed: int) -> NDArray[np.int64]:
    """Return a permutation of 0 to n − 1 by PCG64, seeded with all numbers (seed, epoch, …); equal on all machines."""
    return np.random.Generator(np.random.PCG64(seed)).permutation(n)
