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
ROWS = pl.DataFrame(
    [
        (PREMISE, ENTAILED[0], 0),
        ("Two  dogs run across the snow. ", ENTAILED[1], 0),  # the same premise except for its spaces
        (PREMISE, ENTAILED[2], 0),
        (PREMISE, ENTAILED[0], 0),
        (PREMISE, "The dogs sleep.", 2),
        ("A premise that the corpus lacks.", ENTAILED[0], 0),
    ],
    schema={"premise": pl.String, "hypothesis": pl.String, "label": pl.Int8},
    orient="row",
)
CORPUS = (
    pl.LazyFrame({"text": [PREMISE, *ENTAILED, "The dogs sleep."]})
    .select(sentence_ids(pl.col("text")).alias("sentence_id"), "text")
    .sort("sentence_id")
)


def entailed(nli, bits=0, **settings):
    with TemporaryDirectory() as scratch:
        return pl.concat(entailed_views(CORPUS, nli.lazy(), EntailView(**settings), bits, Path(scratch)))


def test_nli_pairs_and_their_counts_do_not_depend_on_order_or_chunks():
    kept, statistics = build_nli([ROWS[:2], ROWS[2:]], CORPUS)
    assert statistics == {"read": 6, "outside": 1, "duplicates": 1, "kept": 4}
    assert dict(kept["label"].value_counts().rows()) == {0: 3, 2: 1}
    assert_frame_equal(build_nli(list(ROWS.reverse().iter_slices(1)), CORPUS)[0], kept)


def test_hypotheses_become_views_of_their_premise():
    nli, _ = build_nli([ROWS], CORPUS)
    views = entailed(nli, hypotheses=2)
    assert set(views["method"]) == {"entail", "entail-2"}
    assert set(views["text"]) < set(ENTAILED)
    premise = CORPUS.filter(text=PREMISE).collect()["sentence_id"]
    assert views["sentence_id"].unique().to_list() == premise.to_list()
    every = entailed(nli, hypotheses=8)
    assert sorted(every["text"]) == sorted(ENTAILED)
    assert_frame_equal(entailed(nli, bits=2, hypotheses=8), every)


def test_first_hypothesis_depends_on_seed_not_row_order():
    nli, _ = build_nli([ROWS], CORPUS)
    firsts = set()
    for seed in range(20):
        found = entailed(nli, seed=seed)
        assert_frame_equal(entailed(nli.reverse(), seed=seed), found)
        firsts.add(found["text"].item())
    assert firsts == set(ENTAILED)
