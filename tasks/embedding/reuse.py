"""Vectors that the store holds of an encoder already: they are taken over, whatever they were made for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from storage.artifacts.refs import EmbeddingsRef
from storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.artifacts.manifest import Provenance
    from storage.artifacts.store import Store

STAGES: Final = ("embed", "embed_shard")
_NAMES: Final = ("model", "revision")  # of an encoder's configuration: what it is called, not what it computes
_NONE: Final = pl.DataFrame(schema={"sentence_id": pl.UInt64, "embedding": pl.Array(pl.Float32, 1)})


class ReusableVectors:
    """What `STAGES` made with one encoder in one precision.

    Args:
        store: is listed once; what is published later is not seen.
        mine: of the artifact that takes them over.
    """

    def __init__(self, store: Store, mine: Provenance) -> None:
        self._tables = list(_tables(store, mine))

    def of(self, sentences: pl.DataFrame) -> pl.DataFrame:
        """`sentence_id` and `embedding` of those of the sentences that have one, each once, in no order."""
        ids = sentences.select("sentence_id")
        if ids.is_empty():
            return _NONE
        low, high = ids["sentence_id"].min(), ids["sentence_id"].max()
        found = [
            table.filter(pl.col("sentence_id").is_between(low, high)).join(ids.lazy(), on="sentence_id", how="semi")
            for table, first, last in self._tables
            if first <= high and low <= last  # type: ignore[operator]  # numbers, of a column of ids
        ]
        if not found:
            return _NONE
        return pl.concat(found).unique("sentence_id", keep="first", maintain_order=True).collect()


def _tables(store: Store, mine: Provenance) -> Iterator[tuple[pl.LazyFrame, int, int]]:
    """Each table with its lowest and highest id."""
    for ref in store.refs(EmbeddingsRef.model_fields["kind"].default):
        try:
            made = store.manifest(ref).provenance
            if made.stage in STAGES and _space(made) == _space(mine):
                table = store.scan(ref)
                first, last = table.select(pl.min("sentence_id"), pl.max("sentence_id").alias("last")).collect().row(0)
                if first is not None:
                    yield table, first, last
        except StorageError:
            continue  # a damaged one is as good as none: its sentences are embedded again


def _space(made: Provenance) -> object:
    """All that decides a sentence's vector: not the model's name, for its content stands in `encoder`."""
    config = made.config.get("config")
    shape = {name: value for name, value in config.items() if name not in _NAMES} if isinstance(config, dict) else None
    return (
        made.stage_version,
        made.inputs.get("encoder"),
        made.config.get("encoder"),
        made.config.get("precision"),
        shape,
    )
