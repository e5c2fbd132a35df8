"""Sentences through each hop of a translation route, with the translations written out."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.runtime.partitions import in_range
from bsl.models.translation.filters import FILTERS, count_drops, drop_table
from bsl.models.views.views import (
    begin_route,
    follow_hop,
    judged_route,
    kept_views,
    sentences_ahead,
    view_examples,
    view_samples,
)

ENGLISH = ["A man is playing a guitar.", "A man plays the guitar.", "Two dogs run.", "She sings loudly.", "OK."]
GERMAN = {
    "A man is playing a guitar.": "Ein Mann spielt Gitarre.",
    "A man plays the guitar.": "Ein Mann  spielt Gitarre. ",  # the same sentence except for spaces
    "Two dogs run.": "",
    "She sings loudly.": "Sie singt laut.",
    "OK.": "OK.",
}
BACK = {"Ein Mann spielt Gitarre.": "A man plays guitar.", "Sie singt laut.": "sie sie sie sie sie sie", "OK.": "OK."}


def identified(texts):
    return pl.LazyFrame({"text": texts}).select(sentence_ids(pl.col("text")).alias("sentence_id"), "text")


def memory(book):
    """Return translations by the id of the translated sentence."""
    keys = identified(list(book)).select("sentence_id").collect()["sentence_id"]
    return pl.LazyFrame({"sentence_id": keys, "text": list(book.values())})


@pytest.fixture
def corpus():
    return identified(ENGLISH)


@pytest.fixture
def route(corpus):
    there = follow_hop(begin_route(corpus), memory(GERMAN), 1, FILTERS)
    return follow_hop(there, memory(BACK), 2, FILTERS)


def test_each_hop_translates_each_sentence_once(corpus):
    assert_frame_equal(sentences_ahead(begin_route(corpus)), corpus, check_row_order=False)
    there = follow_hop(begin_route(corpus), memory(GERMAN), 1, FILTERS)
    assert_frame_equal(sentences_ahead(there), identified(list(BACK)), check_row_order=False)


def test_view_has_the_id_of_its_original_sentence(corpus, route):
    view = corpus.rename({"text": "source"}).join(kept_views(judged_route(route, "bt-de")), on="sentence_id").collect()
    expected = {
        "A man is playing a guitar.": "A man plays guitar.",
        "A man plays the guitar.": "A man plays guitar.",
        "OK.": "OK.",
    }
    assert dict(view.select("source", "text").rows()) == expected
    assert view["method"].unique().to_list() == ["bt-de"]


def test_drop_table_counts_dropped_sentences_by_hop(corpus, route):
    table = drop_table([count_drops(judged_route(route, "bt-de"))])
    drops = [("hop 1: empty", 1), ("hop 2: loop", 1), ("kept", 2), ("kept: copy of the source", 1)]
    assert sorted(table.select("outcome", "n").rows()) == drops
    assert dict(table.select("outcome", "source").rows())["hop 2: loop"] == ["She sings loudly."]
    alone = follow_hop(begin_route(corpus), memory({"OK.": "OK."}), 1, FILTERS)
    assert alone.collect()["reason"].to_list().count("missing") == 4


def test_view_order_does_not_depend_on_the_row_order(corpus, route):
    parts = judged_route(route, "bt-de"), corpus
    shuffled = [part.collect().sample(fraction=1, shuffle=True, seed=3).lazy() for part in parts]
    assert_frame_equal(kept_views(*parts), kept_views(*shuffled))
    assert kept_views(*parts).collect().height == 8


def test_view_samples_have_a_column_per_method(corpus, route):
    views = kept_views(judged_route(route, "bt-de"), corpus)
    table = view_samples(views.collect(), rows=5)
    assert table.columns == ["original", "bt-de"]
    assert ("Two dogs run.", None) in table.rows()
    assert ("A man plays the guitar.", "A man plays guitar.") in table.rows()
    assert view_samples(views.collect(), rows=2).height == 2


def test_partitioned_samples_and_examples_equal_the_unpartitioned_results():
    texts = identified([f"Sentence number {n} of this little collection." for n in range(60)])
    views = pl.concat(
        texts.select("sentence_id", method=pl.lit(name), text=pl.format("{} {}", "text", pl.lit(name)))
        for name in ("original", "bt-de")
    )
    one_view_only = (pl.col("method") == "bt-de") & pl.col("text").str.contains("1")
    some = views.filter(~one_view_only)
    parts = [in_range(some, number, 2) for number in range(4)]
    assert_frame_equal(view_samples(parts[0].collect(), 8), view_samples(some.collect(), 8))
    examples = view_examples(parts, 9)
    assert_frame_equal(examples, view_examples([some], 9))
    assert examples.height == 9
    assert not any("1" in text for text in examples["original"])
