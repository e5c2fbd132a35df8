"""Pairs as tokens, what is asked of them, and which of them form the batch of a step.

The order is a function of seed, epoch and step alone, so a resumed run needs no iterator state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import polars as pl

from models.errors import NoEmbeddingError, TrainingError
from models.objectives.objective import COLUMN_OF, Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from models.encoder.sentence_encoder import SentenceEncoder
    from models.objectives.objective import Need
    from models.training.config import TrainingConfig

VIEWS = ("text_1", "text_2")
FEWEST: Final = 2  # pairs of a batch
LengthsOf: TypeAlias = "Callable[[NDArray[np.int64]], NDArray[np.int64]]"  # rows → tokens of each


def tokenise_pairs(encoder: SentenceEncoder, pairs: pl.DataFrame, first_row: int = 0) -> Batch:
    """The texts of some pairs as one batch, every different text tokenised once.

    Args:
        encoder: Its tokenizer, prompt and maximal length count.
        pairs: Columns `text_1` and `text_2`; others are ignored.
        first_row: Number of the first of them, for messages.

    Raises:
        TrainingError: A column is missing or holds nulls, or a text gives no token.
    """
    check_pairs(pairs)
    both = pl.concat([pairs[name].rename("text") for name in VIEWS]).to_frame()
    unique = both.unique(maintain_order=True).with_row_index("number")
    numbers = both.join(unique, on="text", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)
    try:
        tokens = encoder.tokenize(unique["text"].to_list())
    except NoEmbeddingError as error:
        column, row = divmod(int((numbers == error.number).argmax()), len(pairs))
        raise TrainingError(f"{VIEWS[column]} of pair {first_row + row} {error.reason}") from error
    return Batch(tokens, numbers[: len(pairs)], numbers[len(pairs) :])


def check_pairs(pairs: pl.DataFrame, first_row: int = 0, needs: frozenset[Need] = frozenset()) -> None:
    """Refuse pairs without both texts, or without what the objective needs of them.

    Args:
        pairs: Some rows.
        first_row: Number of the first of them, for the message.
        needs: What the objective needs besides the texts.

    Raises:
        TrainingError: A column is missing or holds nulls, or a score is not in [0, 1].
    """
    missing = [name for name in VIEWS if name not in pairs.columns]
    if missing:
        raise TrainingError(f"the pairs lack {missing}, expected columns {list(VIEWS)}; pair the views first")
    for name in VIEWS:
        if (row := _first(pairs[name].is_null())) is not None:
            raise TrainingError(
                f"{name} of pair {first_row + row} is null, expected a text; drop incomplete pairs before training"
            )
    for need in sorted(needs):
        _check_column(pairs, need, first_row)


def _check_column(pairs: pl.DataFrame, need: Need, first_row: int) -> None:
    name = COLUMN_OF[need]
    absent = pairs[name].is_null() if name in pairs.columns else pl.Series([True])
    if (row := _first(absent)) is not None:
        state = "null" if name in pairs.columns else "not there"
        raise TrainingError(
            f"{name} of pair {first_row + row} is {state}, and the objective needs {need}; give every pair its {name}, "
            "or choose an objective that does without"
        )
    if need == "scores" and (row := _first(~pairs[name].is_between(0, 1))) is not None:
        raise TrainingError(
            f"score of pair {first_row + row} is {pairs[name][row]}, expected 0 to 1; divide by the largest score that "
            "the set knows"
        )


def _first(bad: pl.Series) -> int | None:
    return bad.arg_max() if bad.any() else None


def order_needs(config: TrainingConfig) -> frozenset[Need]:
    """What the order of batches needs of the pairs."""
    return frozenset({"groups"}) if config.order == "groups" else frozenset()


def steps_per_epoch(pairs: int, config: TrainingConfig) -> int:
    """Batches of one pass over the pairs: the full ones, and the smaller last one unless it is dropped.

    Deviation: one pair alone is no batch. It has no negatives and no statistics, and batch normalisation refuses it.

    Raises:
        TrainingError: Not even one.
    """
    full, left = divmod(pairs, config.batch_size)
    steps = full + (left >= FEWEST and not config.drop_last)
    if steps == 0:
        raise TrainingError(
            f"{pairs} pairs are less than one batch of {config.batch_size}; give more pairs or a smaller batch"
        )
    return steps


def count_steps(pairs: int, config: TrainingConfig) -> int:
    """Optimizer steps of the run: the batches of every epoch, at most `max_steps`.

    Raises:
        TrainingError: Not even one batch.
    """
    steps = steps_per_epoch(pairs, config) * config.epochs
    return steps if config.max_steps is None else min(steps, config.max_steps)


class BatchOrder:
    """Rows of each step: an order of the rows every epoch, cut into batches.

    `random` order is a new seeded permutation every epoch. With `length_buckets` the pairs of so many batches in a row
    are shared out by length, and the batches shuffled. `groups` are permuted whole, and cuts fall between them: a
    batch ends where the last group ends that fits into the pairs of all batches so far, so there are as many batches as
    of random pairs. A group of more than a batch's pairs is cut into such pieces. `given` is the order of the rows.
    No batch is of one pair: the last of an epoch is left out, or with groups goes with the batch before.

    Args:
        pairs: How many there are.
        config: Size, seed and kind of order.
        lengths_of: Rows to tokens of each, for buckets.
        groups: (pairs,) each pair's group, for the order of that name.

    Raises:
        TrainingError: Not even one batch.
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
        """Rows of optimizer step `step`, counted from 1: `batch_size` of them, or about as many where groups are kept.

        A smaller last batch has fewer.
        """
        epoch, place = divmod(step - 1, self._per_epoch)
        bucket, within = divmod(place, self._bucket_size)
        if epoch != self._epoch:
            self._rows, self._cuts = self._order(epoch)
        if (epoch, bucket) != (self._epoch, self._bucket):
            self._epoch, self._bucket, self._batches = epoch, bucket, self._make_bucket(epoch, bucket)
        return self._batches[within]

    def _order(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of an epoch, and where its batches begin and end among them."""
        even = np.minimum(np.arange(self._per_epoch + 1) * self._size, self._pairs)
        if self._given:
            return np.arange(self._pairs), even
        if self._pieces is None:
            return permutation(self._pairs, self._seed, epoch), even
        rows, starts = self._pieces
        order = permutation(len(starts) - 1, self._seed, epoch)
        order = order[_in_company(np.diff(starts)[order], self._size)]
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
    """Rows of one group beside each other, and where each piece of at most `largest` of a group starts, end included.

    Rows of a group keep their order.
    """
    rows = np.argsort(groups, kind="stable")
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(groups[rows])) + 1, [len(rows)]])
    within = np.arange(len(rows)) - np.repeat(firsts[:-1], np.diff(firsts))
    return rows, np.append(np.flatnonzero(within % largest == 0), len(rows))


def _in_company(sizes: NDArray[np.int64], largest: int) -> NDArray[np.int64]:
    """An order of pieces in which none of one row is a batch, given their sizes; mostly the one they have.

    Only one that begins where a batch may, before a piece that fills one, would be. It goes behind such pieces.
    """
    full = sizes == largest
    alone = np.flatnonzero((sizes < FEWEST) & ((np.cumsum(sizes) - sizes) % largest == 0) & np.append(full[1:], False))
    others = np.append(np.flatnonzero(~full), len(sizes))
    places = np.arange(len(sizes), dtype=np.float64)
    places[alone] = others[np.searchsorted(others, alone, side="right")] - 0.5
    return np.argsort(places)


def permutation(n: int, *seed: int) -> NDArray[np.int64]:
    """An order of n things: PCG64 seeded with all numbers (seed, epoch, …), stable over machines."""
    return np.random.Generator(np.random.PCG64(seed)).permutation(n)
