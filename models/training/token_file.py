"""Pairs as token ids in an Arrow file that is memory-mapped: one row a pair, a list of ids for each view.

Texts are tokenised once, chunk by chunk, so memory stays flat however many pairs there are; a step reads its rows as
views into the map. The file is named by its content and appears by a rename, so one that exists is whole.
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from models.encoder.tokens import Tokens
from models.training.batches import VIEWS, TokenPairs, check_pairs, tokenise_pairs
from models.training.snapshots import flush

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

CHUNK = 50_000  # pairs in memory at once while the file is written


class TokenFile:
    """Tokenised pairs of any number; only what is looked at is in memory.

    Attributes:
        digest: SHA-256 of all that decides the content: the texts, the tokenizer, the maximal length.
    """

    def __init__(self, path: Path, pad_id: int, digest: str) -> None:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self.digest, self._pad_id = digest, pad_id
        chunks = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._ends = np.cumsum([chunk.num_rows for chunk in chunks], dtype=np.int64)
        # By chunk and view: where each row starts, and the ids; both without a copy.
        self._lists = [[_arrays(chunk.column(view)) for view in VIEWS] for chunk in chunks]

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def take(self, rows: NDArray[np.int64]) -> TokenPairs:
        """Some pairs in the order of `rows`, as tokens of their own: all first views, then all second ones."""
        ids = [self._ids(view, *place) for view in range(len(VIEWS)) for place in self._places(rows)]
        offsets = np.cumsum([0, *map(len, ids)], dtype=np.int64)
        tokens = Tokens(np.concatenate(ids).astype(np.int32), offsets, self._pad_id)
        return TokenPairs(tokens, np.arange(len(rows)), np.arange(len(rows), 2 * len(rows)))

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of both views of some pairs together, (len(rows),)."""
        pairs = ((self._ids(0, *place), self._ids(1, *place)) for place in self._places(rows))
        return np.array([len(one) + len(two) for one, two in pairs], dtype=np.int64)

    def _places(self, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
        chunks = np.searchsorted(self._ends, rows, side="right")
        starts = np.concatenate([[0], self._ends])[chunks]
        return list(zip(chunks.tolist(), (rows - starts).tolist(), strict=True))

    def _ids(self, view: int, chunk: int, row: int) -> NDArray[Any]:
        starts, ids = self._lists[chunk][view]
        return ids[starts[row] : starts[row + 1]]


def open_token_file(
    folder: Path, pairs: pl.LazyFrame, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> TokenFile:
    """The pairs as tokens, from a file in `folder` that is written unless it is there.

    Args:
        folder: Made if needed.
        pairs: Columns `text_1` and `text_2`; others are ignored.
        tokenizer: The encoder's own.
        max_length: Tokens kept of a text.

    Raises:
        TrainingError: A column is missing or holds nulls.
        EncoderError: The tokenizer has no padding token, or a text gives no token.
    """
    digest = _digest(pairs, tokenizer, max_length)
    path = folder / f"tokens-{digest[:16]}.arrow"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"unfinished-{uuid.uuid4().hex}")
        try:
            _write(unfinished, pairs, tokenizer, max_length)
            flush(unfinished)
            unfinished.rename(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return TokenFile(path, int(tokenizer.pad_token_id), digest)


def _write(path: Path, pairs: pl.LazyFrame, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
    id_type = pa.uint16() if len(tokenizer) <= 1 << 16 else pa.int32()
    schema = pa.schema([(view, pa.list_(id_type)) for view in VIEWS])
    done = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for chunk in _chunks(pairs):
            some = tokenise_pairs(tokenizer, chunk, max_length)
            views = [some.tokens.take(rows) for rows in (some.view_1, some.view_2)]
            lists = [
                pa.ListArray.from_arrays(view.offsets.astype(np.int32), pa.array(view.ids, id_type)) for view in views
            ]
            writer.write(pa.record_batch(lists, schema=schema))
            done += len(some)
            logger.info("tokenised %d pairs", done)


def _digest(pairs: pl.LazyFrame, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    views, row = [hashlib.sha256() for _ in VIEWS], 0
    for chunk in _chunks(pairs):
        check_pairs(chunk, row)
        for digest, name in zip(views, VIEWS, strict=True):
            digest.update("".join(f"{text}\0" for text in chunk[name]).encode())
        row += len(chunk)
    parts = [*(digest.hexdigest() for digest in views), _rules(tokenizer), tokenizer.pad_token_id, max_length]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _rules(tokenizer: PreTrainedTokenizerBase) -> object:
    """What decides the ids of a text."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return sorted(tokenizer.get_vocab().items())
    rules = json.loads(backend.to_str())
    return {
        name: rules[name] for name in rules if name not in {"truncation", "padding"}
    }  # left over from the last call


def _chunks(pairs: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    names = [name for name in VIEWS if name in pairs.collect_schema()]
    return pairs.select(names).collect_batches(chunk_size=CHUNK, maintain_order=True)


def _arrays(lists: Any) -> tuple[NDArray[np.int32], NDArray[Any]]:  # noqa: ANN401  pyarrow is untyped
    return lists.offsets.to_numpy(), lists.values.to_numpy()
