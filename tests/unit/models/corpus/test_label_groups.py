"""No writer, customer or thread is in both parts of the labels."""

import numpy as np
import polars as pl
import pytest

from bsl.models.corpus.labels import parts_of, sentences_of, usable_rows
from bsl.models.errors import EvaluationError

ROWS = 400


def ids(*texts):
    return sentences_of(pl.Series("text", list(texts)))


def labelled(texts, groups, *, use="adapt", held=(), training=(), seed=0):
    """Return rows with their part."""
    rows = pl.DataFrame({**texts, "document": groups})
    parts = parts_of(rows, [*texts], ids("x", *held), ids("y", *training), use=use, seed=seed)
    return rows.with_columns(part=parts)


def own_texts(rows=ROWS):
    return [f"Sentence number {number}." for number in range(rows)]


@pytest.mark.parametrize("groups", [4, 20, 150])
def test_no_group_is_in_both_parts_and_half_of_the_rows_are_test_labels(groups):
    found = labelled({"text": own_texts()}, [f"writer {number % groups}" for number in range(ROWS)])
    assert found.group_by("document").agg(pl.col("part").n_unique())["part"].unique().to_list() == [1]
    largest = ROWS / groups
    assert found.filter(part="judge").height == pytest.approx(ROWS / 2, abs=largest)


def test_groups_of_uneven_size_are_balanced_by_rows():
    """One writer in two wrote a hundred times as much: a draw of each alone would often put both in one part."""
    groups = ["a"] * 150 + ["b"] * 150 + [f"c{number}" for number in range(100)]
    counts = [labelled({"text": own_texts()}, groups, seed=seed).filter(part="judge").height for seed in range(20)]
    assert min(counts) >= 100
    assert max(counts) <= 300


def test_group_of_a_held_out_text_is_for_evaluation():
    texts = own_texts()
    found = labelled({"text": texts}, [f"w{number % 40}" for number in range(ROWS)], held=texts[:1])
    assert found.filter(document="w0")["part"].unique().to_list() == ["judge"]


def test_rows_that_share_a_text_stay_together_with_their_groups():
    """Two writers answered the same question, so both are in one part."""
    texts = own_texts()
    texts[1] = texts[0]
    for seed in range(10):
        found = labelled({"text": texts}, [f"w{number % 40}" for number in range(ROWS)], seed=seed)
        assert found.filter(pl.col("document").is_in(["w0", "w1"]))["part"].n_unique() == 1


def test_training_rows_with_a_test_text_are_unused_if_texts_connect_all_writers():
    """Every writer scored every pair: writers decide, and no text is in both parts."""
    first = [f"Question {number // 10}." for number in range(ROWS)]
    second = [f"Answer {number} only." for number in range(ROWS)]
    found = labelled({"one": first, "two": second}, [f"w{number % 10}" for number in range(ROWS)])
    assert found.drop_nulls("part").group_by("document").agg(pl.col("part").n_unique())["part"].max() == 1
    assert found.filter(part="judge").height > 0
    assert set(found.filter(part="judge")["one"]).isdisjoint(found.filter(part="teach")["one"])


def test_all_groups_can_be_test_labels():
    found = labelled({"text": own_texts()}, [f"w{number % 9}" for number in range(ROWS)], use="judge")
    assert found["part"].unique().to_list() == ["judge"]


def test_order_of_rows_changes_no_part():
    groups = [f"w{number % 15}" for number in range(ROWS)]
    one = labelled({"text": own_texts()}, groups)
    other = labelled({"text": own_texts()[::-1]}, groups[::-1])
    assert one["part"].to_list() == other["part"].to_list()[::-1]


def test_part_of_a_single_group_is_refused():
    rows = pl.DataFrame(
        {
            "label": ["a", "b"] * 60,
            "document": ["one"] * 60 + [f"w{number}" for number in range(60)],
            "part": ["judge"] * 60 + ["teach"] * 60,
        }
    )
    with pytest.raises(EvaluationError, match=r"1 groups? among the test labels, expected at least 2\."):
        usable_rows(rows, "classes", "adapt")
    assert usable_rows(rows.with_columns(document=pl.Series(np.arange(120)).cast(pl.String)), "classes", "adapt").height
