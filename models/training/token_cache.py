"""Cache of tokenised pairs in a memory-mapped Arrow file: per row the views' token ids and the objective's fields.

Texts are tokenised once, chunk by chunk, so memory use does not grow with the number of pairs; a step reads its rows as
views into the map. The file is named by its content and renamed into place, so an existing file is complete.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from models.encoder.unpadded import Tokens
from models.errors import TrainingError
from models.objectives.objective import COLUMN_OF, Batch
from models.training.batches import VIEWS, check_pairs, tokenise_pairs
from storage.filesystem.atomic import whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from models.encoder.sentence_encoder import SentenceEncoder
    from models.encoder.static import Tokenizer
    from models.objectives.objective import Need
    from models.training.teacher_vectors import TeacherVectors

logger = logging.getLogger(__name__)

CHUNK = 50_000  # pairs in memory at once while the file is written
DTYPES = {"label": pl.Int8, "score": pl.Float32, "group": pl.UInt64, "sentence_id": pl.UInt64}


class TokenCache:
    """Any number of tokenised pairs; only rows in use are in memory.

    Attributes:
        digest: SHA-256 of all inputs of a batch: the texts, the tokenizer, the maximal length, the fields that the
            objective needs, and the teacher's vectors.
        pad_id: The tokenizer's padding token.
        teacher: Teacher whose vectors are added to batches; None if the objective needs none.
    """

    def __init__(self, path: Path, pad_id: int, digest: str, teacher: TeacherVectors | None = None) -> None:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self.digest, self.teacher, self.pad_id = digest, teacher, pad_id
        chunks = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._ends = np.cumsum([chunk.num_rows for chunk in chunks], dtype=np.int64)
        # Per chunk and view: the start of each row, and the ids; both without a copy.
        self._lists = [[_arrays(chunk.column(view)) for view in VIEWS] for chunk in chunks]
        names = [name for name in reader.schema.names if name not in VIEWS]
        self._columns = {name: [chunk.column(name).to_numpy() for chunk in chunks] for name in names}

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def column(self, name: str) -> NDArray[Any] | None:
        """Return a column of all pairs, such as `group`; None if the cache does not have it."""
        chunks = self._columns.get(name)
        return None if chunks is None else np.concatenate(chunks)

    def take(self, rows: NDArray[np.int64]) -> Batch:
        """Return the pairs of `rows` as a batch, with tokens of all first views, then of all second views."""
        locations = self._locations(rows)
        ids = [self._ids(view, *location) for view in range(len(VIEWS)) for location in locations]
        values = {
            name: np.array([chunks[chunk][row] for chunk, row in locations]) for name, chunks in self._columns.items()
        }
        return Batch(
            Tokens.of(ids, self.pad_id),
            np.arange(len(rows)),
            np.arange(len(rows), 2 * len(rows)),
            labels=values["label"].astype(np.int64) if "label" in values else None,
            scores=values.get("score"),
            groups=values.get("group"),
            teacher=self.teacher.vectors_of(values["sentence_id"]) if self.teacher is not None else None,
        )

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of both views together, (len(rows),)."""
        total: NDArray[np.int64] = self.view_lengths(rows).sum(axis=1)
        return total

    def view_lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of each view, (len(rows), 2)."""
        lengths = [(len(self._ids(0, *location)), len(self._ids(1, *location))) for location in self._locations(rows)]
        return np.array(lengths, dtype=np.int64).reshape(-1, len(VIEWS))

    def _locations(self, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
        chunks = np.searchsorted(self._ends, rows, side="right")
        starts = np.concatenate([[0], self._ends])[chunks]
        return list(zip(chunks.tolist(), (rows - starts).tolist(), strict=True))

    def _ids(self, view: int, chunk: int, row: int) -> NDArray[Any]:
        starts, ids = self._lists[chunk][view]
        return ids[starts[row] : starts[row + 1]]


def open_token_cache(
    folder: Path,
    pairs: pl.LazyFrame,
    encoder: SentenceEncoder,
    needs: frozenset[Need] = frozenset(),
    teacher: TeacherVectors | None = None,
) -> TokenCache:
    """Open the tokenised pairs, and write their file into `folder` first if it does not exist.

    Args:
        folder: Created if needed.
        pairs: Columns `text_1` and `text_2`, and the columns of `needs`; others are ignored.
        encoder: Provides tokenizer, prompt and maximal length.
        needs: Fields that the objective needs besides the texts.
        teacher: Vectors that the objective learns from; ignored if it needs none.

    Raises:
        TrainingError: A column is missing or contains nulls, a score is not in [0, 1], or a sentence has no vector.
        EncoderError: The tokenizer has no padding token, or a text has no token.
    """
    teacher = _needed(teacher, needs)
    columns = [COLUMN_OF[need] for need in sorted(needs)]
    digest = _digest(pairs, encoder, needs, teacher)
    path = folder / f"tokens-{digest[:16]}.arrow"
    if not path.is_file():
        with whole(path) as unfinished:
            _write(unfinished, pairs, encoder, columns)
    return TokenCache(path, int(encoder.tokenizer.pad_token_id), digest, teacher)


def _needed(teacher: TeacherVectors | None, needs: frozenset[Need]) -> TeacherVectors | None:
    if "teacher" not in needs:
        return None
    if teacher is None:
        raise TrainingError(
            "the objective needs a teacher's vectors, but there is no teacher. Name an encoder in `teacher`, or "
            "choose another objective."
        )
    return teacher


def _write(path: Path, pairs: pl.LazyFrame, encoder: SentenceEncoder, columns: list[str]) -> None:
    id_type = pa.uint16() if len(encoder.tokenizer) <= 1 << 16 else pa.int32()
    values = [(name, pl.Series(dtype=DTYPES[name]).to_arrow().type) for name in columns]
    schema = pa.schema([*((view, pa.list_(id_type)) for view in VIEWS), *values])
    done = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for chunk in _chunks(pairs, columns):
            batch = tokenise_pairs(encoder, chunk, done)
            views = [batch.tokens.take(rows) for rows in (batch.view_1, batch.view_2)]
            lists = [
                pa.ListArray.from_arrays(view.offsets.astype(np.int32), pa.array(view.ids, id_type)) for view in views
            ]
            arrays = [pa.array(_values(chunk, name), kind) for name, kind in values]
            writer.write(pa.record_batch([*lists, *arrays], schema=schema))
            done += len(batch)
            logger.info("tokenised %d pairs", done)


def _digest(
    pairs: pl.LazyFrame,
    encoder: SentenceEncoder,
    needs: frozenset[Need],
    teacher: TeacherVectors | None,
) -> str:
    columns, row = [COLUMN_OF[need] for need in sorted(needs)], 0
    views, values = ([hashlib.sha256() for _ in names] for names in (VIEWS, columns))
    for chunk in _chunks(pairs, columns):
        check_pairs(chunk, row, needs)
        for digest, name in zip(views, VIEWS, strict=True):
            digest.update("".join(f"{text}\0" for text in chunk[name]).encode())
        for digest, name in zip(values, columns, strict=True):
            digest.update(_values(chunk, name).tobytes())
        if teacher is not None:
            teacher.check(_values(chunk, "sentence_id"), row)
        row += len(chunk)
    rules = [_rules(encoder.tokenizer), encoder.prompt, encoder.tokenizer.pad_token_id, encoder.config.length]
    parts = [*(digest.hexdigest() for digest in views), *rules]
    known = {name: digest.hexdigest() for name, digest in zip(columns, values, strict=True)}
    extra = [known, None if teacher is None else teacher.digest] if needs else []
    return hashlib.sha256(json.dumps([*parts, *extra]).encode()).hexdigest()


def _values(pairs: pl.DataFrame, name: str) -> NDArray[Any]:
    return pairs[name].cast(DTYPES[name]).to_numpy()


def _rules(tokenizer: Tokenizer) -> object:
    """Return the part of a tokenizer that decides the ids of a text."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return sorted(tokenizer.get_vocab().items())
    rules = json.loads(backend.to_str())
    call_state = {"truncation", "padding"}  # state of the last call
    return {name: rule for name, rule in rules.items() if name not in call_state}


def _chunks(pairs: pl.LazyFrame, columns: list[str]) -> Iterator[pl.DataFrame]:
    schema = pairs.collect_schema()
    names = [name for name in (*VIEWS, *columns) if name in schema]
    return pairs.select(names).collect_batches(chunk_size=CHUNK, maintain_order=True)


def _arrays(lists: Any) -> tuple[NDArray[np.int32], NDArray[Any]]:  # noqa: ANN401  pyarrow is untyped
    return lists.offsets.to_numpy(), lists.values.to_numpy()
