"""A corpus is counted, deduplicated, sorted by id, and independent of chunks and memory."""

import polars as pl
import pytest

import bsl.models.corpus.corpus as corpus_module
from bsl.models.corpus.corpus import CorpusConfig, TextChunk, _Origins, _prepare, _Tally, build_corpus, deduplicate
from bsl.models.corpus.normalize import NormalizeConfig, sentence_ids
from bsl.models.errors import EmptyCorpusError, SentenceIdCollisionError
from bsl.storage.artifacts.schemas import CORPUS


def chunk(*texts, source="snli", lang="en", limit=None):
    return TextChunk(pl.Series("any", texts, dtype=pl.String), source, lang, limit)


def numbered(count, name="sentence"):
    return [f"{name} {number}" for number in range(count)]


@pytest.fixture
def build(tmp_path):
    def call(chunks, memory_bytes=1 << 30, limit=None, **normalize):
        parts, seen = [], []
        scratch = tmp_path / f"scratch-{len(list(tmp_path.iterdir()))}"
        scratch.mkdir()
        config = CorpusConfig(limit=limit, normalize=NormalizeConfig(**normalize))
        statistics = build_corpus(chunks, config, scratch, parts.append, lambda *step: seen.append(step), memory_bytes)
        assert seen[-1][0] == statistics.read
        return parts, statistics

    return call


def test_duplicate_sentence_gets_its_first_source(build):
    german = chunk("A dog runs. ", "Ein Hund.", source="mnli", lang="de")
    (frame,), statistics = build([chunk("A dog  runs.", "A cat."), german])
    assert frame.schema == CORPUS
    assert frame["sentence_id"].is_sorted()
    assert frame["sentence_id"].to_list() == frame.select(sentence_ids(pl.col("text"))).to_series().to_list()
    assert set(frame.select("text", "source", "lang").rows()) == {
        ("A dog runs.", "snli", "en"),
        ("A cat.", "snli", "en"),
        ("Ein Hund.", "mnli", "de"),
    }
    assert statistics.per_source == {"mnli": 1, "snli": 2}


def test_statistics_count_every_sentence_by_outcome(build):
    texts = ["", " \x00", None, "ab", "abc", "abc ", "x" * 10, "x" * 11]
    _, statistics = build([chunk(*texts)], min_chars=3, max_chars=10)
    counts = {"read": 8, "empty": 3, "too_short": 1, "too_long": 1, "duplicates": 1, "unique": 2}
    assert statistics.model_dump(include={*counts}) == counts
    assert statistics.quantiles == {"p05": 3, "p25": 3, "p50": 3, "p75": 10, "p95": 10, "p99": 10, "p100": 10}
    assert statistics.mean_chars == 6.5
    assert sum(each.sentences for each in statistics.histogram) == 2
    assert {sample["text"] for sample in statistics.samples} == {"abc", "x" * 10}


def test_parts_are_full_sorted_by_id_and_equal_on_disk_and_in_memory(build, monkeypatch):
    monkeypatch.setattr(corpus_module, "PART_ROWS", 100)
    chunks = [chunk(*numbered(950)[start : start + 100]) for start in range(0, 950, 100)]
    parts, statistics = build([*chunks, chunk(*numbered(300))], memory_bytes=1)
    assert [part.height for part in parts] == [100] * 9 + [50]
    whole = pl.concat(parts)
    assert whole["sentence_id"].is_sorted()
    assert whole["sentence_id"].n_unique() == statistics.published == 950
    in_memory, same = build([*chunks, chunk(*numbered(300))])
    assert pl.concat(in_memory).equals(whole)
    assert same == statistics


def test_limit_keeps_the_smallest_ids(build):
    whole, _ = build([chunk(*numbered(200))])
    some, statistics = build([chunk(*numbered(200)[::-1])], limit=30)
    assert pl.concat(some).equals(pl.concat(whole).head(30))
    assert (statistics.unique, statistics.published) == (200, 30)


@pytest.mark.parametrize("memory_bytes", [1 << 30, 1], ids=["in memory", "spilled"])
def test_source_limit_excludes_duplicates_of_earlier_sources(build, memory_bytes):
    books = numbered(200, "book")
    shared = chunk("A dog runs.", *books[:50])
    whole, _ = build([shared, chunk(*books, source="books")])
    halves = [chunk(*books[100:], source="books", limit=30), chunk(*books[:100], source="books", limit=30)]
    parts, statistics = build([shared, *halves], memory_bytes=memory_bytes)
    expected = pl.concat(whole).filter(pl.col("source") == "books").head(30)
    assert pl.concat(parts).filter(pl.col("source") == "books").equals(expected)
    assert (statistics.unique, statistics.published) == (201, 81)
    assert statistics.per_source == {"books": 30, "snli": 51}


def test_empty_corpus_error_counts_drops_by_reason(build):
    counts = r"of 3 sentences read, 2 are empty, 0 are shorter than 1 and 1 are longer than 5"
    with pytest.raises(EmptyCorpusError, match=counts):
        build([chunk("", " ", "too long")], max_chars=5)
    with pytest.raises(EmptyCorpusError, match=r"of 0 sentences read.* change ingest\.corpus\.normalize\.min_chars"):
        build([])


def test_sentence_id_collision_is_rejected():
    frame = pl.DataFrame({"sentence_id": pl.Series([7, 3, 7], dtype=pl.UInt64), "text": ["one", "two", "other"]})
    with pytest.raises(SentenceIdCollisionError, match="0x0000000000000007: 'one' and 'other'"):
        deduplicate(frame)


def test_more_sources_than_sixteen_bits_can_count_keep_their_names():
    origins, text = _Origins(), pl.Series(["A dog runs."])
    chunks = [TextChunk(text, f"source {number}", "en") for number in range(70_000)]
    for one in chunks:
        origins.number(one)
    for number in (65_535, 65_536, 69_999):
        frame = origins.name(_prepare(chunks[number], NormalizeConfig(), origins, _Tally()))
        assert frame["source"].to_list() == [f"source {number}"]
