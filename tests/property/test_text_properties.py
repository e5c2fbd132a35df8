"""Property tests of text normalisation and corpora: any text, any split of a source into chunks."""

import hashlib
import io
import tempfile
import unicodedata
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from bsl.models.corpus.corpus import CorpusConfig, TextChunk, build_corpus
from bsl.models.corpus.normalize import NormalizeConfig, normalize

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TRICKY = st.text(
    st.sampled_from(list(" \t\n\x00\x01\x85\xa0\u2003\u2028\ufeffaeo\u0301\u0323\u1100\u1161\u11a8é’")), max_size=12
)


def normalized(texts):
    return pl.DataFrame({"t": texts}, schema={"t": pl.String}).select(normalize(pl.col("t"))).to_series().to_list()


@given(st.lists(TEXTS | TRICKY, min_size=1, max_size=20))
def test_normalised_text_is_nfc_and_stripped_without_control_characters_and_stays_so(texts):
    once = normalized(texts)
    assert normalized(once) == once
    for text in once:
        assert text == unicodedata.normalize("NFC", text)
        assert text == text.strip()
        assert not any(unicodedata.category(character) == "Cc" for character in text)


def published(chunks, memory_bytes):
    """Return the sha256 of a corpus's Parquet bytes."""
    digest = hashlib.sha256()

    def write(part):
        content = io.BytesIO()
        part.write_parquet(content, compression="zstd", row_group_size=131_072)
        digest.update(content.getvalue())

    with tempfile.TemporaryDirectory() as scratch:
        config = CorpusConfig(normalize=NormalizeConfig(max_chars=20))
        build_corpus(chunks, config, Path(scratch), write, lambda *_: None, memory_bytes)
    return digest.hexdigest()


@given(
    st.lists(st.tuples(TEXTS | TRICKY, st.sampled_from(["a", "b"])), max_size=40),
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from([1, 500, 1 << 30]),
)
@settings(max_examples=50)  # each builds two corpora
def test_corpus_bytes_do_not_depend_on_chunks_or_memory(rows, cuts, memory_bytes):
    rows = [("always one sentence", "a"), *rows]
    whole = [TextChunk(pl.Series([text], dtype=pl.String), source, "en") for text, source in rows]
    bounds = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    pieces = [rows[start:end] for start, end in pairwise(bounds)]
    by_source = [
        TextChunk(pl.Series([text for text, _ in run], dtype=pl.String), source, "en")
        for piece in pieces
        for source, run in groupby(piece, itemgetter(1))
    ]
    assert published(whole, 1 << 30) == published(by_source, memory_bytes)
