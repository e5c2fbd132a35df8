"""Translations of given sentences are looked up in the memory: by ranges of ids, each once, including new parts."""

import polars as pl
import pytest

from bsl.models.runtime.partitions import in_range
from bsl.tasks.translation.translate import MemoryLookup
from tests.unit.storage.artifacts.test_store import MEMORY, publish

TOP = 2**63  # the first id of the upper range of two


def sentences(*ids):
    return pl.LazyFrame(
        {"sentence_id": ids, "text": [f"s{n}" for n in ids]}, schema_overrides={"sentence_id": pl.UInt64}
    )


@pytest.fixture
def recall(store, tmp_path):
    def of(*ids, bits=1):
        (tmp_path / "scratch").mkdir()
        made = MemoryLookup(store, MEMORY, tmp_path / "scratch", bits, len(ids))
        made.ask_for(lambda number: in_range(sentences(*ids), number, bits))
        made.read()
        return made

    return of


def test_memory_lookup_splits_sentences_into_missing_and_translated(store, recall, tmp_path):
    publish(store, 1, {1: "eins", TOP + 1: "oben"})
    publish(store, 2, {3: "drei"})
    known = recall(1, 3, 4, TOP, TOP + 1)
    assert MemoryLookup(store, "unknown", tmp_path, 1, 2).missing(0, sentences(1)).rows() == [(1, "s1")]
    assert known.missing(0, sentences(1, 3, 4)).rows() == [(4, "s4")]
    assert known.missing(1, sentences(TOP, TOP + 1)).rows() == [(TOP, f"s{TOP}")]
    assert (known[0].rows(), known[1].rows()) == ([(1, "eins"), (3, "drei")], [(TOP + 1, "oben")])


def test_first_part_by_name_wins_also_if_it_is_published_later(store, recall):
    first, later = 4 << 252, 9 << 252  # first hexadecimal digit of the key
    publish(store, later, {1: "later by name", 2: "zwei"})
    known = recall(1, 2, 3)
    assert known[0].rows() == [(1, "later by name"), (2, "zwei")]
    publish(store, first, {1: "first by name", 3: "drei"})
    known.read()
    assert known[0].rows() == [(1, "first by name"), (2, "zwei"), (3, "drei")]


def test_memory_lookup_reads_few_rows_beyond_the_requested_ids(store, recall):
    step = 2**64 // 4096  # evenly spread, as hashes are
    publish(store, 1, {step * n: f"t{n}" for n in range(4096)})
    known = recall(*(step * n for n in range(0, 4096, 512)), bits=0)
    assert known.missing(0, sentences(0, step * 512, 7)).rows() == [(7, "s7")]
    assert known[0].height < 64
