"""What labels prove and teach: nothing that is held out is learnt, classes become balanced pairs."""

import numpy as np
import polars as pl
import pytest

from models.errors import EvaluationError, TrainingError
from models.own_labels import PARTNERS, class_pairs, provable, proves, sentences_of, shares


def ids(*texts: str) -> pl.Series:
    return sentences_of(pl.Series("text", list(texts)))


def test_a_text_with_a_held_sentence_proves_and_one_with_a_learnt_sentence_teaches():
    rows = pl.DataFrame({"text": ["It is good. I like it.", "It is bad. I dislike it.", "Held here. It is bad."]})
    found = proves(rows, ["text"], ids("I like it.", "Held here."), ids("It is bad."), share=1.0)
    assert found.to_list() == [True, False, True]


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_of_other_text_a_share_proves_and_ids_decide(share):
    rows = pl.DataFrame({"text": [f"Sentence number {number}." for number in range(2000)]})
    found = proves(rows, ["text"], ids("x"), ids("y"), share=share)
    assert found.mean() == pytest.approx(share, abs=0.03)
    upside_down = proves(rows.reverse(), ["text"], ids("x"), ids("y"), share=share).reverse()
    assert found.to_list() == upside_down.to_list()


def test_both_sides_of_a_pair_count():
    rows = pl.DataFrame({"sentence1": ["A cat.", "A dog."], "sentence2": ["Held.", "A bird."], "score": [1.0, 0.0]})
    assert proves(rows, ["sentence1", "sentence2"], ids("Held."), ids("A dog."), share=1.0).to_list() == [True, False]


def test_pairs_that_share_a_text_prove_or_teach_together():
    """200 questions with 20 answers: no proving answer stands in a pair that teaches."""
    rows = pl.DataFrame({"q": [f"Question {n}?" for n in range(200)], "a": [f"Answer {n % 20}." for n in range(200)]})
    found = rows.with_columns(proves=proves(rows, ["q", "a"], ids("x"), ids("y"), share=0.3, seed=1))
    parts = found.group_by("a").agg(pl.col("proves").n_unique(), pl.len())
    assert parts["proves"].to_list() == [1] * 20
    assert 0.1 < found["proves"].mean() < 0.6


def test_pairs_are_joined_over_others_and_a_held_sentence_counts_for_all():
    rows = pl.DataFrame({"one": ["a", " b", "c", "e", "g", "i"], "two": ["b", "c", "d", "f", "h", "j"]})
    found = proves(rows, ["one", "two"], ids("d"), ids("a", "e"), share=1.0)
    assert found.to_list() == [True, True, True, False, True, True]
    found = proves(rows, ["one", "two"], ids("x"), ids("d"), share=1.0)
    assert found.to_list() == [False, False, False, True, True, True]


@pytest.mark.parametrize("seed", range(5))
def test_pairs_that_all_hang_together_are_divided_by_their_texts(seed):
    """400 pairs of 40 sentences, some of which are held out or learnt."""
    draw = np.random.default_rng(seed)
    sides = {name: [f"Sentence {n}." for n in draw.integers(0, 40, 400)] for name in ("one", "two")}
    rows = pl.DataFrame(sides).with_columns(score=pl.int_range(pl.len()) % 5)
    held, learnt = ids("Sentence 0.", "Sentence 1."), ids("Sentence 2.", "Sentence 3.")
    found = rows.with_columns(proves=proves(rows, ["one", "two"], held, learnt, share=0.3, seed=seed))
    proving, teaching = (
        {*part["one"], *part["two"]} for part in (found.filter("proves"), found.filter(~pl.col("proves")))
    )
    assert proving.isdisjoint(teaching)
    assert {"Sentence 0.", "Sentence 1."}.isdisjoint(teaching)
    assert {"Sentence 2.", "Sentence 3."}.isdisjoint(proving)
    kept = provable(found.with_columns(label=pl.col("score").cast(pl.String)), "pairs")
    assert kept.height == 400 - found["proves"].null_count()
    assert (~kept["proves"]).sum() >= 10


def test_a_text_without_a_word_has_a_row_too():
    rows = pl.DataFrame({"text": ["", "  ", "Held."]})
    assert proves(rows, ["text"], ids("Held."), ids("y"), share=0.0).to_list() == [False, False, True]


def test_class_pairs_are_balanced_and_say_what_classes_say():
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


def test_a_text_alone_in_its_class_is_left_out():
    pairs = class_pairs(["a", "b", "c", "d", "alone"], np.array([0, 0, 1, 1, 2]))
    assert "alone" not in pairs["sentence1"].to_list()


def test_one_class_teaches_nothing():
    with pytest.raises(TrainingError, match="2 labelled texts of 1 classes, expected two classes"):
        class_pairs(["a", "b"], np.array([0, 0]))


def test_scores_become_shares():
    assert shares(pl.Series([1, 3, 5])).to_list() == [0.0, 0.5, 1.0]
    with pytest.raises(TrainingError, match="all 2 scores are 4, expected several"):
        shares(pl.Series([4.0, 4.0]))
    with pytest.raises(TrainingError, match="no labelled pair teaches"):
        shares(pl.Series([], dtype=pl.Float64))


def divided(**counts: tuple[int, int]) -> pl.DataFrame:
    """Labelled rows by label: how many teach, how many prove."""
    rows = [(label, part == 1) for label, parts in counts.items() for part in (0, 1) for _ in range(parts[part])]
    return pl.DataFrame(rows, schema={"label": pl.String, "proves": pl.Boolean}, orient="row")


def test_a_class_that_too_few_rows_teach_is_left_out():
    rows = divided(good=(30, 12), bad=(30, 12), rare=(4, 9), unseen=(0, 5))
    kept = provable(rows, "classes")
    assert kept["label"].unique().sort().to_list() == ["bad", "good"]
    assert kept.height == 84


@pytest.mark.parametrize(
    ("counts", "kind", "message"),
    [
        ({"good": (4, 0), "bad": (2, 2)}, "classes", "8 labelled rows, of which 2 prove .*: 0 of 2 classes have 5"),
        ({"good": (38, 14), "bad": (2, 14)}, "classes", "1 of 2 classes have 5 rows that teach, expected 2 or more"),
        ({"good": (50, 0), "bad": (50, 0)}, "classes", "0 prove something .* expected at least 20; .* label 67 rows"),
        ({"good": (0, 50), "bad": (0, 50)}, "classes", "0 of 2 classes have 5 rows that teach"),
        ({"1": (50, 10), "5": (50, 9)}, "pairs", "19 prove something .* expected at least 20"),
        ({"1": (50, 30), "5": (50, 0)}, "pairs", "all that prove have the score 1, expected several"),
    ],
)
def test_labels_that_prove_nothing_are_refused_with_what_they_lack(counts, kind, message):
    with pytest.raises(EvaluationError, match=message):
        provable(divided(**counts), kind)


def test_pairs_that_all_prove_are_evidence_though_nothing_teaches():
    assert provable(divided(**{"1": (0, 30), "5": (0, 30)}), "pairs").height == 60
