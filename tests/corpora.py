"""Corpora of a few sentences, published without a source."""

import polars as pl

from bsl.models.corpus.normalize import sentence_ids
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import CorpusRef


def publish_corpus(site, texts, lang="en"):
    ref = CorpusRef(key=f"{len(texts):064x}")
    frame = pl.DataFrame({"text": texts}).select(
        sentence_id=sentence_ids(pl.col("text")), text="text", source=pl.lit("test"), lang=pl.lit(lang)
    )
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(frame.sort("sentence_id"))
    return ref
