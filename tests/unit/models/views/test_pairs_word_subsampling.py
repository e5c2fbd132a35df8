"""Subsampling of frequent words: published probability, draws by sentence id, no empty view."""

import math
from pathlib import Path

import polars as pl
import pytest

from bsl.models.views import pairs as thinning
from bsl.models.views.pairs import WordCounts, thinned

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def frame(texts):
    return pl.DataFrame({"id": range(len(texts)), "text": texts}, schema_overrides={"id": pl.UInt64})


def thin(texts, threshold, seed):
    counts = WordCounts()
    counts.add(texts["text"])
    return thinned(texts, counts.shares(), threshold, seed)


def test_frequent_words_survive_with_the_published_probability():
    texts = frame([f"the the the the the the the rare{n} x{n} y{n}" for n in range(2000)])
    kept = sum(text.split().count("the") for text in thin(texts, 0.01, seed=1))
    expected = math.sqrt(0.01 / 0.7)  # "the" is 7 of 10 words
    assert abs(kept / 14000 - expected) < 0.01
    assert all(f"rare{n}" in text for n, text in enumerate(thin(texts, 0.01, seed=1)))


def test_subsampling_depends_only_on_sentence_id_and_seed():
    texts = frame([f"a man {n} is walking a dog in the park" for n in range(50)])
    once = thin(texts, 0.01, seed=3)
    assert thin(texts.reverse(), 0.01, seed=3).reverse().to_list() == once.to_list()
    assert thin(texts, 0.01, seed=4).to_list() != once.to_list()


def test_subsampling_never_empties_a_text():
    texts = frame(["the the", "the", "", "the cat"])
    assert all(
        len(after) > 0 or before == "" for before, after in zip(texts["text"], thin(texts, 1e-9, seed=0), strict=True)
    )


def test_subsampling_does_not_depend_on_the_slice_size(monkeypatch):
    """Words are counted over all texts, and draws depend on the id."""
    texts = frame([f"A man {n} walks the dog, and the man's dog walks {'him ' * (n % 4)}" for n in range(100)])
    at_once = thin(texts, 0.01, seed=3)
    monkeypatch.setattr(thinning, "_ROWS", 7)
    assert thin(texts, 0.01, seed=3).to_list() == at_once.to_list()
    assert thin(texts.clear(), 0.01, seed=3).to_list() == []


@pytest.mark.skipif(not CLEAR.exists(), reason="only Linux tells a process's peak")
def test_smaller_slices_lower_peak_memory(monkeypatch):
    """The words of all texts at once would take 2 kB per sentence."""
    texts = frame([f"a man {n} is walking his dog in the park of town {n % 97}" for n in range(60_000)])
    peak_of(monkeypatch, 1024, texts)  # the allocator takes extra memory at the first call
    assert peak_of(monkeypatch, 1024, texts) < peak_of(monkeypatch, len(texts), texts) / 3


def peak_of(monkeypatch, rows, texts):
    """Return the peak growth of the process in bytes while it subsamples `rows` texts at a time."""
    monkeypatch.setattr(thinning, "_ROWS", rows)
    CLEAR.write_text("5")  # resets the peak to the current memory use
    before = bytes_of("VmRSS")
    thin(texts, 0.01, seed=3)
    return bytes_of("VmHWM") - before


def bytes_of(field):
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])
