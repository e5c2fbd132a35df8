"""Vectors of an embeddings artifact, looked up by sentence: dense, or sparse (TF-IDF).

Shapes: N pairs or texts, S unique sentences, D width.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.corpus.normalize import sentence_ids
from bsl.storage.artifacts.manifest import installed_versions
from bsl.storage.artifacts.schemas import SPARSE_EMBEDDINGS
from bsl.storage.errors import SourceError
from bsl.tasks.figures import VectorsFigures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from pydantic import JsonValue
    from scipy.sparse import csr_array

    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.evaluation.probe.problem import Features
    from bsl.storage.artifacts.refs import EmbeddingsRef
    from bsl.storage.artifacts.store import Store

SPARSE: Final = "sparse_embeddings"
"""Name of the table of sparse vectors."""


@dataclass(frozen=True)
class Vectors:
    """Vectors of unique sentences.

    Attributes:
        name: Name for messages.
        rows: Sentence id → row of its vector.
        computation: Signature fields that describe the computation of the vectors.
        table: One vector per row, (S, D); sparse over words, as from TF-IDF, or dense, as from an encoder.
    """

    name: str
    rows: Mapping[int, int]
    computation: Mapping[str, JsonValue]
    table: NDArray[np.float32] | csr_array

    @property
    def is_sparse(self) -> bool:
        """Whether the vectors are over words; a sentence without a known word is then the zero vector."""
        return not isinstance(self.table, np.ndarray)

    def cosines(self, pairs: pl.DataFrame, place: str) -> NDArray[np.float64]:
        """Return the cosines of the vectors of `sentence1` and `sentence2`, shape (N,); 0 with a zero sparse vector.

        Raises:
            SourceError: A sentence has no vector.
            EvaluationError: A vector is not finite.
        """
        from bsl.models.evaluation.correlation import cosine_scores, sparse_cosines

        one, other = (self.features(pairs[side], place) for side in ("sentence1", "sentence2"))
        return sparse_cosines(one, other) if self.is_sparse else cosine_scores(one, other)

    def features(self, texts: pl.Series, place: str) -> Features:
        """Return the vectors of texts, shape (N, D); `place`, such as dataset and split, is for messages.

        Raises:
            SourceError: A sentence has no vector; the message names its row.
        """
        ids = texts.to_frame("text").select(sentence_ids(pl.col("text"))).to_series().to_list()
        missing = next((row for row, sentence in enumerate(ids) if sentence not in self.rows), None)
        if missing is not None:
            raise SourceError(
                f"{place}: the sentence of row {missing + 1} has no vector in {self.name}. Embed this set together "
                "with the other scored sets."
            )
        return self.table[[self.rows[sentence] for sentence in ids]]


def open_vectors(store: Store, embeddings: EmbeddingsRef) -> Vectors:
    """Read an embeddings artifact."""
    sparse, computation = SPARSE in store.manifest(embeddings).tables, computation_of(store, embeddings)
    table = store.scan(embeddings, SPARSE if sparse else None).collect()
    rows = dict(zip(table["sentence_id"].to_list(), range(table.height), strict=True))
    return Vectors(str(embeddings), rows, computation, _matrix(table) if sparse else table["embedding"].to_numpy())


def computation_of(store: Store, embeddings: EmbeddingsRef) -> dict[str, JsonValue]:
    """Return the signature fields of an embeddings artifact; `unsigned` if its manifest has none."""
    return store.manifest(embeddings).figures_as(VectorsFigures).signature


def sparse_table(ids: pl.Series, table: csr_array) -> pl.DataFrame:
    """Return the table `SPARSE` of sentence ids and their sparse vectors."""
    columns, values = (_split(part, table.indptr) for part in (table.indices, table.data))
    return pl.DataFrame({"sentence_id": ids, "columns": columns, "values": values}, schema=SPARSE_EMBEDDINGS)


def _split(values: NDArray[np.generic], starts: Sequence[int]) -> list[list[object]]:
    flat = values.tolist()
    return [flat[start:end] for start, end in itertools.pairwise(starts)]


def _matrix(table: pl.DataFrame) -> csr_array:
    from scipy.sparse import csr_array

    starts = np.concatenate([[0], table["columns"].list.len().to_numpy().cumsum()])
    columns, values = (table[name].explode().drop_nulls().to_numpy() for name in ("columns", "values"))
    width = int(columns.max()) + 1 if len(columns) else 1
    return csr_array((values, columns.astype(np.int64), starts), shape=(table.height, width))


_ABSENT: Final = "not installed"


def encoder_computation(folder: Path, config: EncoderConfig, dtype: str) -> dict[str, JsonValue]:
    """Return the signature fields of an encoder: pooling, length, precision (`fp32` or `bf16`) and so on.

    A static table's tokenizer adds no special tokens, a transformer's does.
    """
    from bsl.models.encoder.serialization.folder_settings import completed, read_saved  # imports transformers

    saved = read_saved(folder)
    config = completed(saved, config)
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
    """Return package → version without the machine-specific build tag (`+cpu`)."""
    installed = installed_versions()
    return {name: installed[name].partition("+")[0].replace(_ABSENT, "unknown") for name in packages}
