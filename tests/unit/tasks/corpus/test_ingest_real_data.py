"""The mirror's real datasets are read as declared."""

import os

import polars as pl
import pytest

from bsl.models.corpus.corpus import CorpusConfig, TextChunk, build_corpus
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import read_nli_pairs, read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source

MIRROR = os.environ.get("BSL_DATA_MIRROR")
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not MIRROR, reason="BSL_DATA_MIRROR names no mirror"),
]

# Rows as in the mirror's own table; unique sentences were counted with Python sets over split, NFC-normalised text.
NLI = [("snli_train_part", "pairs", 72630), ("snli_tok", "dev", 9842), ("multinli_sample", "raw_6k", 6388)]


@pytest.mark.parametrize(("dataset", "split", "rows"), NLI)
def test_nli_datasets_have_expected_row_counts_and_labels(dataset, split, rows):
    source = resolve_source(SourceSpec(dataset=dataset, split=split), MIRROR)
    frame = pl.concat(read_nli_pairs(source, ReadReport(dataset), max_bad_share=0.0))
    assert frame.height == rows
    assert sorted(frame["label"].unique()) == [0, 1, 2]


def test_snli_and_multinli_corpus_contains_each_unique_sentence(tmp_path):
    specs = [SourceSpec(dataset=dataset, split=split) for dataset, split, _ in NLI]
    chunks, expected = [], {}
    for source in (resolve_source(spec, MIRROR) for spec in specs):
        for frame in read_source(source, ReadReport(source.name), max_bad_share=0.0):
            texts = pl.concat(frame.iter_columns())
            chunks.append(TextChunk(texts, source.name, source.lang))
            for text in texts:
                visible = text.replace("\u00ad", "")  # soft hyphens; this text has no other invisible characters
                expected.setdefault(" ".join(visible.split()), source.name)
    parts: list[pl.DataFrame] = []
    statistics = build_corpus(chunks, CorpusConfig(), tmp_path, parts.append, lambda *_: None)
    corpus = pl.concat(parts)
    assert dict(corpus.select("text", "source").iter_rows()) == expected
    assert statistics.published == len(expected)
    assert statistics.read == 2 * sum(rows for *_, rows in NLI)
