"""The vectors of an embeddings artifact, looked up by sentence."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from models.text.normalize import sentence_ids
from storage.errors import SourceError
from storage.refs import EmbeddingsRef
from storage.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Vectors:
    """Unique sentences with a vector each."""

    name: str
    rows: dict[int, int]
    table: "NDArray[np.float32]"

    def of(self, texts: pl.Series, place: str) -> "NDArray[np.float32]":
        """The vector of each text: (n, d).

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
        return self.table[[self.rows[sentence] for sentence in ids]]


def open_vectors(store: Store, embeddings: EmbeddingsRef) -> Vectors:
    """Read an embeddings artifact."""
    found = store.scan(embeddings).collect()
    rows = dict(zip(found["sentence_id"].to_list(), range(found.height), strict=True))
    return Vectors(str(embeddings), rows, found["embedding"].to_numpy())
