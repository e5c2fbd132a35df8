"""Labelled NLI pairs of a corpus, and the views made from them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from polars.testing import assert_frame_equal

from bsl.models.corpus.nli import build_nli
from bsl.models.corpus.normalize import sentence_ids
from bsl.models.views.annotated_pairs import entailed_views
from bsl.models.views.config import EntailView

PREMISE = "Two dogs run across the snow."
ENTAILED = ["Dogs are outside.", "Animals run.", "It is cold where the dogs are."]
ROWS = [
    (PREMISE, ENTAILED[0], 0),
    ("Two  dogs run across the snow. ", ENTAILED[1], 0),  # the same premise except for its spaces
    (PREMISE, ENTAILED[2], 0),
    (PREMISE, ENTAILED[0], 0),
    (PREMISE, "The dogs sleep.", 2),
    ("A premise that the corpus lacks.", ENTAILED[0], 0),
]


def pairs(rows):
    return pl.DataFrame(rows, schema={"premise": pl.String, "hypothesis": pl.String, "label": pl.Int8}, orient="row")


def corpus(*texts):
    frame = pl.LazyFrame({"text": list(texts)})
    return frame.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text").sort("sentence_id")


CORPUS = corpus(PREMISE, *ENTAILED, "The dogs sleep.")


def entailed(corpus, nli, view, bits=0):
    with TemporaryDirectory() as scratch:
        return pl.concat(entailed_views(corpus, nli, view, bits, Path(scratch)))


def test_nli_statistics_count_every_pair_by_outcome():
    kept, statistics = build_nli([pairs(ROWS[:2]), pairs(ROWS[2:])], CORPUS)
    assert statistics.model_dump() == {"read": 6, "outside": 1, "duplicates": 1, "kept": 4}
    assert kept.height == 4
    assert dict(kept["label"].value_counts().rows()) == {0: 3, 2: 1}


def test_nli_pairs_do_not_depend_on_order_or_chunks():
    once, _ = build_nli([pairs(ROWS)], CORPUS)
    cut, _ = build_nli([pairs([row]) for row in reversed(ROWS)], CORPUS)
    assert_frame_equal(once, cut)


def test_hypotheses_become_views_of_their_premise():
    nli, _ = build_nli([pairs(ROWS)], CORPUS)
    views = entailed(CORPUS, nli.lazy(), EntailView(hypotheses=2))
    assert set(views["method"]) == {"entail", "entail-2"}
    assert set(views["text"]) < set(ENTAILED)
    assert views["sentence_id"].unique().to_list() == corpus(PREMISE).collect()["sentence_id"].to_list()
    every = entailed(CORPUS, nli.lazy(), EntailView(hypotheses=8))
    assert sorted(every["text"]) == sorted(ENTAILED)
    assert_frame_equal(entailed(CORPUS, nli.lazy(), EntailView(hypotheses=8), bits=2), every)


def test_first_hypothesis_depends_on_seed_not_row_order():
    nli, _ = build_nli([pairs(ROWS)], CORPUS)
    firsts = set()
    for seed in range(20):
        view = EntailView(seed=seed)
        found = entailed(CORPUS, nli.lazy(), view)
        assert_frame_equal(entailed(CORPUS, nli.reverse().lazy(), view), found)
        firsts.add(found["text"].item())
    assert firsts == set(ENTAILED)
