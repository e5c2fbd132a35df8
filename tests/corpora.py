"""Published artifacts without a stage: any table, rows of scores, corpora and vectors of a few sentences."""

import numpy as np
import polars as pl

from bsl.models.corpus.normalize import sentence_ids
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef
from bsl.storage.artifacts.schemas import SCORES, TABLES


def publish(store, ref, table=None, name=None, *, inputs=None, figures=None, page=None):
    """Publish an artifact of one table, or of a page alone; return its reference.

    Args:
        store: the store.
        ref: reference of the artifact.
        table: rows with the columns of its kind, in any order.
        name: name of the table, if it is not the kind's.
        inputs: name → reference of the artifacts that it is made from, which need not exist.
        figures: figures of the manifest.
        page: text of a file `page.md`.
    """
    entries = {
        label: InputEntry(kind=one.kind, key=one.key, digest=_digest(store, one))
        for label, one in (inputs or {}).items()
    }
    with store.draft(ref, Provenance(stage_version=1, config={}, inputs=entries)) as draft:
        if table is not None and ref.kind != "embeddings":  # whose width is not declared
            schema = TABLES[name or ref.kind.partition("/")[0]]
            table = table.select(schema.names()).cast(dict(schema))
        if table is not None:
            draft.write(table, name)
        if page is not None:
            (draft.folder / "page.md").write_text(page)
        draft.note(figures or {})
    return ref


def _digest(store, ref):
    return store.manifest(ref).digest if store.defect(ref) is None else ""


def score_row(dataset, value, **changed):
    """Return a row of the table `scores`."""
    return {
        "model": "m", "dataset": dataset, "subset": "all", "split": "test", "metric": "spearman", "protocol": "all",
        "value": value, "n": 10, "ci_low": 0.0, "ci_high": 1.0, "seed": 0, "checkpoint": "", "signature": "", **changed,
    }  # fmt: skip


def scores_of(rows):
    return pl.DataFrame(rows).select(SCORES.names()).cast(dict(SCORES))


def publish_corpus(site, texts, lang="en"):
    ref = CorpusRef(key=f"{len(texts):064x}")
    frame = pl.DataFrame({"text": texts}).select(
        sentence_id=sentence_ids(pl.col("text")), text="text", source=pl.lit("test"), lang=pl.lit(lang)
    )
    return publish(site.open_store(), ref, frame.sort("sentence_id"))


def publish_vectors(site, texts, table, digit="0"):
    """Publish a row of a table as vector of each text, under a key of one repeated digit."""
    ref = EmbeddingsRef(key=64 * digit)
    ids = texts.to_frame("text").select(sentence_ids(pl.col("text"))).to_series()
    vectors = pl.DataFrame({"sentence_id": ids, "embedding": np.asarray(table, dtype=np.float32)})
    return publish(site.open_store(), ref, vectors.sort("sentence_id"))
