"""Training data in memory-mapped arrays: tokenised pairs with their other fields, and a teacher's vectors.

    tokens-<digest>/ids, offsets           both views of each pair, one after the other (`Tokens`)
                    label, group, …        one value for each pair
    teacher-<name>/ids.npy, vectors.npy

Texts are tokenised once, chunk by chunk, so memory use does not grow with the number of pairs. The folder is named by
its content and renamed into place, so an existing folder is complete.

Shapes: N sentences, B sentences of a batch, D width.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bsl.models.encoder.layouts import Tokens
from bsl.models.encoder.texts import OTHER_ENCODER, is_foreign
from bsl.models.errors import TrainingError
from bsl.models.objectives.columns import COLUMNS, TEACHER
from bsl.models.objectives.objective import Batch
from bsl.models.training.batches import TEXTS, check_pairs, tokenise_pairs
from bsl.storage.filesystem.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray

    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.encoder.static import Tokenizer
    from bsl.models.objectives.columns import Column

logger = logging.getLogger(__name__)

CHUNK = 50_000  # pairs or sentences in memory at once while the files are written


@dataclass(frozen=True)
class TeacherVectors:
    """A table of vectors, which may be memory-mapped.

    Attributes:
        ids: (N,) uint64, sentence ids in ascending order.
        vectors: (N, D) float32, one row per id.
    """

    ids: NDArray[np.uint64]
    vectors: NDArray[np.float32]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of ids and vectors."""
        digest = hashlib.sha256(self.ids.tobytes())
        for start in range(0, len(self.vectors), CHUNK):
            digest.update(self.vectors[start : start + CHUNK].tobytes())
        return digest.hexdigest()

    def check(self, ids: NDArray[np.uint64], first_row: int) -> None:
        """Refuse pairs whose sentence has no vector.

        Args:
            ids: Sentence ids of some pairs.
            first_row: Row number of the first pair, for the message.

        Raises:
            TrainingError: A sentence has no vector; the message names the first such pair.
        """
        rows = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        if missing := np.flatnonzero(self.ids[rows] != ids).tolist():
            raise TrainingError(
                f"the teacher has no vector for sentence_id {ids[missing[0]]} of pair {first_row + missing[0]}. Embed "
                "the corpus of the pairs with the teacher."
            )

    def vectors_of(self, ids: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the vectors (B, D) of sentences; all of them must be in the table."""
        return np.asarray(self.vectors[np.searchsorted(self.ids, ids)])


def open_teacher(folder: Path, name: str, rows: pl.LazyFrame) -> TeacherVectors:
    """Open a teacher's memory-mapped vectors, and write their files into `folder` first if they do not exist.

    Args:
        folder: Created if needed.
        name: Part of the file names; other vectors need another name.
        rows: `sentence_id` (UInt64, ascending) and `embedding` (an array of D float32).

    Raises:
        TrainingError: The ids are not in ascending order, or one occurs twice.
    """
    path = folder / f"teacher-{name}"
    if not path.is_dir():
        with atomic_write(path, keep_existing=True) as unfinished:
            unfinished.mkdir()
            _write_teacher(unfinished, rows)
    ids, vectors = (np.load(path / f"{part}.npy", mmap_mode="r") for part in ("ids", "vectors"))
    return TeacherVectors(ids, vectors)


def _write_teacher(folder: Path, rows: pl.LazyFrame) -> None:
    ids = rows.select("sentence_id").collect()["sentence_id"].to_numpy()
    if not (ids[1:] > ids[:-1]).all():
        raise TrainingError("the teacher's sentence ids are not sorted, or contain duplicates. Embed the corpus again.")
    np.save(folder / "ids.npy", ids)
    width = rows.collect_schema()["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array
    table = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(len(ids), width))
    done = 0
    for chunk in rows.select("embedding").collect_batches(chunk_size=CHUNK, maintain_order=True):
        table[done : done + len(chunk)] = chunk["embedding"].to_numpy()
        done += len(chunk)
    table.flush()


class TokenCache:
    """Any number of tokenised pairs; only rows in use are in memory.

    Attributes:
        digest: SHA-256 of all inputs of a batch: the texts, the tokenizer, the maximal length, the fields that the
            objective needs, and the teacher's vectors.
        pad_id: The tokenizer's padding token.
        teacher: Teacher whose vectors are added to batches; None if the objective needs none.
    """

    def __init__(
        self, folder: Path, encoder: SentenceEncoder, digest: str, teacher: TeacherVectors | None = None
    ) -> None:
        self.digest, self.teacher, self.pad_id = digest, teacher, int(encoder.own_tokenizer.pad_token_id)
        ids, offsets = _mapped(folder / "ids", _id_type(encoder)), _mapped(folder / "offsets", np.int64)
        self._views = Tokens(ids, offsets, self.pad_id)  # rows 2i and 2i + 1 are the views of pair i
        self._columns = {
            name: _mapped(folder / name, pl.Series(dtype=column.dtype).to_numpy().dtype)
            for name, column in COLUMNS.items()
            if (folder / name).is_file()
        }

    def __len__(self) -> int:
        return len(self._views) // len(TEXTS)

    def column(self, name: Column) -> NDArray[Any] | None:
        """Return a column of all pairs, such as `group`; None if the cache does not have it."""
        return self._columns.get(name)

    def take(self, rows: NDArray[np.int64]) -> Batch:
        """Return the pairs of `rows` as a batch, with tokens of all first views, then of all second views."""
        found = self._views.take(np.concatenate([2 * rows, 2 * rows + 1]))
        values: dict[str, NDArray[Any]] = {
            name: column[rows].astype(COLUMNS[name].read_as, copy=False) for name, column in self._columns.items()
        }
        if self.teacher is not None:
            values[TEACHER] = self.teacher.vectors_of(values.pop("sentence_id"))
        return Batch(
            Tokens(found.ids.astype(np.int32), found.offsets, self.pad_id),
            np.arange(len(rows)),
            np.arange(len(rows), 2 * len(rows)),
            values,
        )

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of both views together, (len(rows),)."""
        total: NDArray[np.int64] = self.view_lengths(rows).sum(axis=1)
        return total

    def view_lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of each view, (len(rows), 2)."""
        return self._views.lengths_of(2 * rows[:, None] + np.arange(len(TEXTS)))


def open_token_cache(
    folder: Path,
    pairs: pl.LazyFrame,
    encoder: SentenceEncoder,
    needs: frozenset[Column] = frozenset(),
    teacher: TeacherVectors | None = None,
    nullable: frozenset[Column] = frozenset(),
) -> TokenCache:
    """Open the tokenised pairs, and write them into `folder` first if they are not there.

    Args:
        folder: Created if needed.
        pairs: Columns `text_1` and `text_2`, and the columns of `needs`; others are ignored.
        encoder: Provides tokenizer, prompt and maximal length.
        needs: Columns that the objective needs besides the texts.
        teacher: Vectors that the objective learns from; ignored if it needs none.
        nullable: Those of the columns that may contain nulls; a batch then has NaN.

    Raises:
        TrainingError: A column is missing or contains nulls that it may not contain, a score is not in [0, 1], a
            sentence has no vector, or most texts consist of unknown tokens.
        EncoderError: The tokenizer has no padding token, or a text has no token.
    """
    if "sentence_id" not in needs:
        teacher = None
    elif teacher is None:
        raise TrainingError(
            "the objective needs a teacher's vectors, but there is no teacher. Name an encoder in `teacher`, or "
            "choose another objective."
        )
    digest = _digest(pairs, encoder, needs, teacher, nullable)
    path = folder / f"tokens-{digest[:16]}"
    if not path.is_dir():
        with atomic_write(path, keep_existing=True) as unfinished:
            unfinished.mkdir()
            _write(unfinished, pairs, encoder, sorted(needs))
    return TokenCache(path, encoder, digest, teacher)


def _write(folder: Path, pairs: pl.LazyFrame, encoder: SentenceEncoder, columns: Sequence[Column]) -> None:
    done, end = 0, np.int64(0)
    unknown, example = 0, ""
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in ("ids", "offsets", *columns)}
        files["offsets"].write(end.tobytes())
        for chunk in _chunks(pairs, columns):
            batch = tokenise_pairs(encoder, chunk, done)
            views = batch.tokens.take(np.stack([batch.view_1, batch.view_2], axis=1).ravel())
            files["ids"].write(views.ids.astype(_id_type(encoder)).tobytes())
            files["offsets"].write((end + views.offsets[1:]).tobytes())
            for name in columns:
                files[name].write(_values(chunk, name).tobytes())
            rows = np.flatnonzero(encoder.are_unknown(views))
            foreign = [text for row in rows.tolist() if is_foreign(text := chunk[TEXTS[row % 2]][row // 2])]
            unknown, example = unknown + len(foreign), example or "".join(foreign[:1])
            done, end = done + len(batch), end + views.offsets[-1]
            logger.info("tokenised %d pairs", done)
    if unknown > done:  # of two views each
        raise TrainingError(
            f"{unknown:,} of {2 * done:,} texts consist mostly of words that the encoder's tokenizer does not know, "
            f"such as {example[:60]!r}. {OTHER_ENCODER}"
        )


def _id_type(encoder: SentenceEncoder) -> DTypeLike:
    return np.uint16 if len(encoder.own_tokenizer) <= 1 << 16 else np.int32


def _mapped(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    return np.memmap(path, dtype, "r") if path.stat().st_size else np.zeros(0, dtype)  # an empty file cannot be mapped


def _digest(
    pairs: pl.LazyFrame,
    encoder: SentenceEncoder,
    needs: frozenset[Column],
    teacher: TeacherVectors | None,
    nullable: frozenset[Column],
) -> str:
    columns, row = sorted(needs), 0
    views, values = ([hashlib.sha256() for _ in names] for names in (TEXTS, columns))
    for chunk in _chunks(pairs, columns):
        check_pairs(chunk, row, needs, nullable)
        for digest, name in zip(views, TEXTS, strict=True):
            digest.update("".join(f"{text}\0" for text in chunk[name]).encode())
        for digest, name in zip(values, columns, strict=True):
            digest.update(_values(chunk, name).tobytes())
        if teacher is not None:
            teacher.check(_values(chunk, "sentence_id"), row)
        row += len(chunk)
    rules = [_rules(encoder.own_tokenizer), encoder.prompt, encoder.own_tokenizer.pad_token_id, encoder.config.length]
    parts = [*(digest.hexdigest() for digest in views), *rules]
    known = {name: digest.hexdigest() for name, digest in zip(columns, values, strict=True)}
    extra = [known, None if teacher is None else teacher.digest] if needs else []
    return hashlib.sha256(json.dumps([*parts, *extra]).encode()).hexdigest()


def _values(pairs: pl.DataFrame, name: Column) -> NDArray[Any]:
    return pairs[name].cast(COLUMNS[name].dtype).to_numpy()


def _rules(tokenizer: Tokenizer) -> object:
    """Return the part of a tokenizer that decides the ids of a text."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return sorted(tokenizer.get_vocab().items())
    rules = json.loads(backend.to_str())
    call_state = {"truncation", "padding"}  # state of the last call
    return {name: rule for name, rule in rules.items() if name not in call_state}


def _chunks(pairs: pl.LazyFrame, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    schema = pairs.collect_schema()
    names = [name for name in (*TEXTS, *columns) if name in schema]
    return pairs.select(names).collect_batches(chunk_size=CHUNK, maintain_order=True)
