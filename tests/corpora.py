"""Corpora and vectors of a few sentences, published without a source."""

import numpy as np
import polars as pl

from bsl.models.corpus.normalize import sentence_ids
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef


def publish_corpus(site, texts, lang="en"):
    ref = CorpusRef(key=f"{len(texts):064x}")
    frame = pl.DataFrame({"text": texts}).select(
        sentence_id=sentence_ids(pl.col("text")), text="text", source=pl.lit("test"), lang=pl.lit(lang)
    )
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(frame.sort("sentence_id"))
    return ref


def publish_vectors(site, texts, table, digit="0"):
    """Publish a row of a table as vector of each text, under a key of one repeated digit."""
    ref = EmbeddingsRef(key=64 * digit)
    ids = texts.to_frame("text").select(sentence_ids(pl.col("text"))).to_series()
    vectors = pl.DataFrame({"sentence_id": ids, "embedding": np.asarray(table, dtype=np.float32)})
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(vectors.sort("sentence_id"))
    return ref
