"""What labels judge and teach: nothing that judges is learnt, classes become balanced pairs."""

import numpy as np
import polars as pl
import pytest

from bsl.models.corpus.labels import (
    JUDGING,
    PARTNERS,
    class_pairs,
    parts_of,
    sentences_of,
    shares,
    usable_rows,
)
from bsl.models.errors import EvaluationError, TrainingError
from tests.every import every


def ids(*texts):
    return sentences_of(pl.Series("text", list(texts)))


def parts(rows, sides, held, learnt, *, use, seed=0):
    return parts_of(rows, sides, held, learnt, use=use, seed=seed).to_list()


def test_rows_with_held_out_sentences_are_test_labels():
    texts = [f"It is bad. I like {number}." for number in range(20)]
    rows = pl.DataFrame({"text": [*texts, "Held here. It is bad."]})
    found = parts(rows, ["text"], ids("I like 0.", "Held here."), ids("It is bad."), use="adapt")
    assert (found[0], found[-1]) == ("judge", "judge")
    assert {*found[1:-1]} == {"judge", "teach"}


def test_judge_evaluates_all_rows_in_any_order():
    rows = pl.DataFrame({"text": [f"Sentence number {number}." for number in range(2000)]})
    found = parts(rows, ["text"], ids("x"), ids("y"), use="adapt")
    assert found == parts(rows.reverse(), ["text"], ids("x"), ids("y"), use="adapt")[::-1]
    assert {*parts(rows, ["text"], ids("x"), ids("y"), use="judge")} == {"judge"}


@pytest.mark.parametrize("own", [True, False])
def test_adapt_trains_on_half_of_the_labelled_rows(own):
    """Of the text itself, three in ten of which are held out, and of other text."""
    texts = [f"Sentence number {number}." for number in range(2000)]
    held, learnt = (ids(*texts[:600]), ids(*texts[600:])) if own else (ids("x"), ids("y"))
    found = parts(pl.DataFrame({"text": texts}), ["text"], held, learnt, use="adapt")
    assert np.mean([part == "teach" for part in found]) == pytest.approx(0.5, abs=0.04)
    assert {*found} == {"teach", "judge"}
    assert not own or "teach" not in found[:600]


@pytest.mark.parametrize(("others", "share"), [(1000, 1.0), (100, JUDGING)])
def test_judge_splits_labels_that_cover_most_training_text(others, share):
    texts = [f"Sentence number {number}." for number in range(900)]
    learnt = ids(*texts, *(f"Another sentence of number {number}." for number in range(others)))
    found = parts(pl.DataFrame({"text": texts}), ["text"], ids("x"), learnt, use="judge")
    assert np.mean([part == "judge" for part in found]) == pytest.approx(share, abs=0.04)


def test_both_texts_of_a_pair_determine_its_part():
    rows = pl.DataFrame({"sentence1": ["A cat.", "Held."], "sentence2": ["Held.", "A bird."], "score": [1.0, 0.0]})
    found = parts(rows, ["sentence1", "sentence2"], ids("Held."), ids("A dog."), use="adapt")
    assert found == ["judge", "judge"]


def test_pairs_sharing_a_text_get_the_same_part():
    """200 questions with 20 answers: no answer stands in two parts."""
    rows = pl.DataFrame({"q": [f"Question {n}?" for n in range(200)], "a": [f"Answer {n % 20}." for n in range(200)]})
    found = rows.with_columns(part=parts_of(rows, ["q", "a"], ids("x"), ids("y"), use="adapt", seed=1))
    assert found.group_by("a").agg(pl.col("part").n_unique())["part"].to_list() == [1] * 20
    counts = found["part"].value_counts()["count"]
    assert len(counts) == 2
    assert counts.min() >= 20


def test_transitively_connected_pairs_get_the_same_part():
    rows = pl.DataFrame({"one": ["a", " b", "c", "e", "g", "g"], "two": ["b", "c", "d", "f", "h", "i"]})
    found = parts(rows, ["one", "two"], ids("d"), ids("a", "e", "g"), use="adapt")
    assert found[:3] == ["judge"] * 3
    assert found[4] == found[5]


@pytest.mark.parametrize("seed", range(5))
def test_large_connected_group_is_divided_by_text(seed):
    """800 pairs of 40 sentences, some of which are held out or learnt."""
    draw = np.random.default_rng(seed)
    sides = {name: [f"Sentence {n}." for n in draw.integers(0, 40, 800)] for name in ("one", "two")}
    rows = pl.DataFrame(sides).with_columns(label=(pl.int_range(pl.len()) % 5).cast(pl.String))
    held, learnt = ids("Sentence 0.", "Sentence 1."), ids("Sentence 2.", "Sentence 3.")
    found = rows.with_columns(part=parts_of(rows, ["one", "two"], held, learnt, use="adapt", seed=seed))
    first, second = (found.filter(part=part) for part in ("judge", "teach"))
    one, other = ({*part["one"], *part["two"]} for part in (first, second))
    assert one.isdisjoint(other)
    assert {"Sentence 0.", "Sentence 1."}.isdisjoint(other)
    assert min(first.height, second.height) >= 10
    assert usable_rows(found, "pairs", "adapt").height == 800 - found["part"].null_count()


def test_empty_text_gets_a_part():
    rows = pl.DataFrame({"text": ["", "  ", "Held."]})
    assert parts(rows, ["text"], ids("Held."), ids(""), use="adapt")[2] == "judge"


def test_class_pairs_are_balanced_and_scored_by_class():
    texts = [f"text {number}" for number in range(30)]
    classes = np.array([0, 1, 2] * 10)
    pairs = class_pairs(texts, classes)
    of = dict(zip(texts, classes, strict=True))
    same = [of[one] == of[two] for one, two in pairs.select("sentence1", "sentence2").iter_rows()]
    assert pairs["score"].to_list() == [1.0 if alike else 0.0 for alike in same]
    assert pairs["score"].mean() == 0.5
    assert pairs.height == 30 * 2 * PARTNERS
    assert (pairs["sentence1"] != pairs["sentence2"]).all()
    assert pairs.equals(class_pairs(texts, classes))


def test_text_alone_in_its_class_gives_no_pairs():
    pairs = class_pairs(["a", "b", "c", "d", "alone"], np.array([0, 0, 1, 1, 2]))
    assert "alone" not in pairs["sentence1"].to_list()


def test_single_class_is_rejected_for_training():
    with pytest.raises(TrainingError, match="2 labelled texts of 1 classes, expected at least two classes"):
        class_pairs(["a", "b"], np.array([0, 0]))


def test_scores_are_scaled_linearly_to_unit_range():
    assert shares(pl.Series([1, 3, 5])).to_list() == [0.0, 0.5, 1.0]
    with pytest.raises(TrainingError, match="all 2 scores are 4, expected different"):
        shares(pl.Series([4.0, 4.0]))
    with pytest.raises(TrainingError, match="no training labels"):
        shares(pl.Series([], dtype=pl.Float64))


def divided(names=("teach", "judge"), /, **counts):
    """Labelled rows by label: how many are of each part."""
    rows = [(label, names[part]) for label, parts in counts.items() for part in (0, 1) for _ in range(parts[part])]
    return pl.DataFrame(rows, schema={"label": pl.String, "part": pl.String}, orient="row")


def test_class_with_too_few_training_labels_is_dropped():
    rows = divided(good=(30, 12), bad=(30, 12), rare=(1, 9), unseen=(0, 9))
    kept = usable_rows(rows, "classes", "adapt")
    assert kept["label"].unique().sort().to_list() == ["bad", "good"]
    assert kept.height == 84


def test_class_with_too_few_test_labels_is_dropped():
    rows = divided(good=(30, 12), bad=(30, 12), rare=(9, 6))
    assert usable_rows(rows, "classes", "adapt").height == 84


@every(
    [
        ({"good": (4, 0), "bad": (2, 2)}, "classes", "8 rows .2 test labels, .*: 0 of 2 classes have enough rows"),
        (
            {"good": (38, 14), "bad": (1, 14)},
            "classes",
            "1 of 2 classes .* with 7 test labels and 2 training labels each",
        ),
        (
            {"good": (50, 0), "bad": (50, 0)},
            "classes",
            "0 of 2 classes have enough rows.* Label at least 30 rows of each class",
        ),
        (
            {"good": (50, 9), "bad": (50, 9)},
            "classes",
            "18 usable test labels, expected at least 20.* Label at least 60 rows",
        ),
        ({"good": (0, 50), "bad": (0, 50)}, "classes", "0 of 2 classes have enough rows"),
        ({"1": (50, 10), "5": (50, 9)}, "pairs", "19 usable test labels, expected at least 20"),
        ({"1": (50, 30), "5": (50, 0)}, "pairs", "all test labels have the score 1, expected different"),
    ]
)
def test_insufficient_labels_error_names_counts_and_fix(counts, kind, message):
    with pytest.raises(EvaluationError, match=message):
        usable_rows(divided(**counts), kind, "adapt")


@pytest.mark.parametrize(
    ("counts", "kind", "message"),
    [
        ({"good": (30, 6), "bad": (30, 30)}, "classes", "96 rows .36 test labels, .*: 1 of 2 classes"),
        (
            {"good": (30, 6), "bad": (30, 30)},
            "classes",
            "with 7 test labels each.* Label at least 20 rows of each class",
        ),
        (
            {"1": (50, 10), "5": (50, 9)},
            "pairs",
            "19 usable test labels, expected at least 20.* Label at least 40 rows",
        ),
        ({"1": (50, 30), "5": (50, 0)}, "pairs", "all test labels have the score 1, expected different"),
    ],
)
def test_insufficient_test_only_labels_error_names_counts_and_fix(counts, kind, message):
    with pytest.raises(EvaluationError, match=message):
        usable_rows(divided((None, "judge"), **counts), kind, "judge")
