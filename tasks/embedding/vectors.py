"""The vectors of an embeddings artifact, looked up by sentence: dense, or sparse as a system of words makes them.

Shapes: N pairs or texts, S unique sentences, D width.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from models.corpus.normalize import sentence_ids
from storage.artifacts.manifest import installed_versions
from storage.artifacts.schemas import SPARSE_EMBEDDINGS
from storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from pydantic import JsonValue
    from scipy.sparse import csr_array

    from models.encoder.config import EncoderConfig
    from models.evaluation.probe.problem import Features
    from storage.artifacts.refs import EmbeddingsRef
    from storage.artifacts.store import Store

SPARSE: Final = "sparse_embeddings"
"""Table of an embeddings artifact whose vectors are sparse."""
MADE: Final = "signature"
"""Under which figure of its manifest an embeddings artifact says how its vectors were made."""


@dataclass(frozen=True)
class Vectors(ABC):
    """Unique sentences with a vector each.

    Attributes:
        name: for messages.
        rows: sentence id → row of its vector.
        made: fields of a signature that say how they were made.
    """

    name: str
    rows: Mapping[int, int]
    made: Mapping[str, JsonValue]

    @abstractmethod
    def cosines(self, pairs: pl.DataFrame, place: str) -> NDArray[np.float64]:
        """Cosine of the vectors of `sentence1` and `sentence2`: (N,).

        Raises:
            SourceError: as `numbers`.
            EvaluationError: a vector is not finite.
        """

    @abstractmethod
    def features(self, texts: pl.Series, place: str) -> Features:
        """What a classifier reads of texts: (N, D).

        Args:
            texts: sentences as they were embedded.
            place: data set and split, for messages.

        Raises:
            SourceError: as `numbers`.
        """

    def numbers(self, texts: pl.Series, place: str) -> list[int]:
        """The row of each text's vector.

        Args:
            texts: sentences as they were embedded.
            place: data set and split, for the message.

        Raises:
            SourceError: a sentence was not embedded, naming the row.
        """
        ids = texts.to_frame("text").select(sentence_ids(pl.col("text"))).to_series().to_list()
        missing = next((row for row, sentence in enumerate(ids) if sentence not in self.rows), None)
        if missing is not None:
            raise SourceError(
                f"{place}: the sentence of row {missing + 1} has no vector in {self.name}; embed this set with the "
                "others that are scored"
            )
        return [self.rows[sentence] for sentence in ids]


@dataclass(frozen=True)
class DenseVectors(Vectors):
    """Vectors of an encoder.

    Attributes:
        table: a vector a row, (S, D).
    """

    table: NDArray[np.float32]

    def cosines(self, pairs: pl.DataFrame, place: str) -> NDArray[np.float64]:
        """As `Vectors.cosines`."""
        from models.evaluation.correlation import cosine_scores

        return cosine_scores(*(self.table[self.numbers(pairs[side], place)] for side in ("sentence1", "sentence2")))

    def features(self, texts: pl.Series, place: str) -> NDArray[np.float32]:
        """The vectors themselves."""
        return self.table[self.numbers(texts, place)]


@dataclass(frozen=True)
class SparseVectors(Vectors):
    """Vectors of a system of words, of which a sentence has few.

    Attributes:
        table: a vector a row, (S, D).
    """

    table: csr_array

    def cosines(self, pairs: pl.DataFrame, place: str) -> NDArray[np.float64]:
        """As `Vectors.cosines`; a sentence without a known word has cosine 0 with all."""
        from models.evaluation.correlation import sparse_cosines

        return sparse_cosines(*(self.table[self.numbers(pairs[side], place)] for side in ("sentence1", "sentence2")))

    def features(self, texts: pl.Series, place: str) -> csr_array:
        """The vectors themselves, sparse."""
        return self.table[self.numbers(texts, place)]


def open_vectors(store: Store, embeddings: EmbeddingsRef) -> Vectors:
    """Read an embeddings artifact."""
    sparse, made = SPARSE in store.manifest(embeddings).tables, made_of(store, embeddings)
    table = store.scan(embeddings, SPARSE if sparse else None).collect()
    rows = dict(zip(table["sentence_id"].to_list(), range(table.height), strict=True))
    if not sparse:
        return DenseVectors(str(embeddings), rows, made, table["embedding"].to_numpy())
    return SparseVectors(str(embeddings), rows, made, _matrix(table))


def made_of(store: Store, embeddings: EmbeddingsRef) -> dict[str, JsonValue]:
    """What an embeddings artifact says of how its vectors were made; `unsigned` where it says nothing."""
    made = store.manifest(embeddings).figures.get(MADE)
    return made if isinstance(made, dict) else {"vectors": "unsigned"}


def sparse_table(ids: pl.Series, table: csr_array) -> pl.DataFrame:
    """Sentence ids and the vector of each as the table `SPARSE`."""
    columns, values = (_split(part, table.indptr) for part in (table.indices, table.data))
    return pl.DataFrame({"sentence_id": ids, "columns": columns, "values": values}, schema=SPARSE_EMBEDDINGS)


def _split(values: NDArray[np.generic], starts: Sequence[int]) -> list[list[object]]:
    flat = values.tolist()
    return [flat[start:end] for start, end in itertools.pairwise(starts)]


def _matrix(table: pl.DataFrame) -> csr_array:
    import numpy as np
    from scipy.sparse import csr_array

    starts = np.concatenate([[0], table["columns"].list.len().to_numpy().cumsum()])
    columns, values = (table[name].explode().drop_nulls().to_numpy() for name in ("columns", "values"))
    width = int(columns.max()) + 1 if len(columns) else 1
    return csr_array((values, columns.astype(np.int64), starts), shape=(table.height, width))


_ABSENT: Final = "not installed"


def encoder_made(folder: Path, config: EncoderConfig, dtype: str) -> dict[str, JsonValue]:
    """How an encoder makes vectors.

    Args:
        folder: the encoder's; decides whether its tokenizer adds special tokens, which a static table's does not.
        config: pooling, length and casing.
        dtype: `fp32` or `bf16`.
    """
    from models.encoder.serialization.load import read_saved, settled  # imports transformers

    saved = read_saved(folder)
    config = settled(saved, config)
    words: dict[str, JsonValue] = {"words": saved.words.spelled} if saved.words else {}
    lower = config.lower_case or (saved.words is not None and saved.words.case == "lower")
    return {
        "vectors": "encoder",
        "pool": config.pooling,
        "len": config.length,
        "special": saved.backbone.kind == "Transformer",
        "norm": config.normalize,
        **words,
        "case": "lower" if lower else "kept",
        "dtype": dtype,
        "prompt": config.prompt or None,
        **versions_of("torch", "transformers"),
    }


def versions_of(*packages: str) -> dict[str, str]:
    """Package → its version without the build (`+cpu`), which says which machine it is for."""
    installed = installed_versions()
    return {name: installed[name].partition("+")[0].replace(_ABSENT, "unknown") for name in packages}
