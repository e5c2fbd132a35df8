"""What labels judge and teach: nothing that judges is learnt, groups stay whole, classes become balanced pairs."""

import numpy as np
import polars as pl
import pytest

from bsl.models.corpus.labels import (
    JUDGING,
    PARTNERS,
    class_pairs,
    held_out_sentences,
    parts_of,
    sentences_of,
    shares,
    usable_rows,
)
from bsl.models.errors import EvaluationError, TrainingError
from tests.every import every

ROWS = 400


def numbered(count, text="Sentence number {}."):
    return [text.format(number) for number in range(count)]


def ids(*texts):
    return sentences_of(pl.Series("text", list(texts)))


def divided(texts, *, groups=None, held=("x",), training=("y",), use="adapt", seed=0, documents=1):
    """Return rows of texts (or of several columns of texts) with their part; `documents` have what is held out."""
    report = [(text, unit, "report") for text in held for unit in range(documents)]
    held_out = held_out_sentences(pl.DataFrame(report, ["text", "unit", "part"], orient="row"))
    rows = pl.DataFrame(texts if isinstance(texts, dict) else {"text": texts})
    sides = rows.columns
    if groups is not None:
        rows = rows.with_columns(document=pl.Series(groups))
    return rows.with_columns(part=parts_of(rows, sides, held_out, ids(*training), use=use, seed=seed))


def test_rows_with_held_out_sentences_are_test_labels():
    texts = [*numbered(20, "It is bad. I like {}."), "Held here. It is bad."]
    found = divided(texts, held=["I like 0.", "Held here."], training=["It is bad."])["part"].to_list()
    assert (found[0], found[-1]) == ("judge", "judge")
    assert {*found[1:-1]} == {"judge", "teach"}
    pairs = {"sentence1": ["A cat.", "Held."], "sentence2": ["Held.", "A bird."]}
    assert divided(pairs, held=["Held."])["part"].to_list() == ["judge", "judge"]
    assert divided(["", "  ", "Held."], held=["Held."], training=[""])["part"][2] == "judge"


def test_rows_with_a_sentence_of_many_held_out_documents_are_drawn_unless_they_are_nothing_else():
    """Regression: all labelled texts with a signature were test labels."""
    texts = [*numbered(200, "I like {}. Yours, the help desk!"), "Yours, the help desk!"]
    for documents, taught in ((2, 0), (3, 100)):
        found = divided(texts, held=["Yours the help desk."], documents=documents)["part"]
        assert (found == "teach").sum() == pytest.approx(taught, abs=20)
        assert found[-1] == "judge"


@pytest.mark.parametrize("groups", [None, [f"w{number % 15}" for number in range(ROWS)]])
def test_order_of_rows_changes_no_part_and_all_rows_can_be_test_labels(groups):
    texts, back = numbered(ROWS), groups and groups[::-1]
    assert divided(texts, groups=groups)["part"].equals(divided(texts[::-1], groups=back)["part"].reverse())
    assert {*divided(texts, groups=groups, use="judge")["part"]} == {"judge"}


@pytest.mark.parametrize("own", [True, False])
def test_adapt_trains_on_half_of_the_labelled_rows(own):
    """Of the text itself, three in ten of which are held out, and of other text."""
    texts = numbered(2000)
    found = divided(texts, held=texts[:600] if own else ["x"], training=texts[600:] if own else ["y"])["part"]
    assert (found == "teach").mean() == pytest.approx(0.5, abs=0.04)
    assert {*found} == {"teach", "judge"}
    assert not own or "teach" not in found[:600]


@pytest.mark.parametrize(("others", "share"), [(1000, 1.0), (100, JUDGING)])
def test_judge_splits_labels_that_cover_most_training_text(others, share):
    texts = numbered(900)
    found = divided(texts, training=[*texts, *numbered(others, "Another sentence of number {}.")], use="judge")
    assert found["part"].eq_missing("judge").mean() == pytest.approx(share, abs=0.04)


def test_pairs_sharing_a_text_get_the_same_part_also_through_others():
    """200 questions with 20 answers: no answer stands in two parts."""
    pairs = {"q": numbered(200, "Question {}?"), "a": [f"Answer {n % 20}." for n in range(200)]}
    found = divided(pairs, seed=1)
    assert found.group_by("a").agg(pl.col("part").n_unique())["part"].to_list() == [1] * 20
    counts = found["part"].value_counts()["count"]
    assert len(counts) == 2
    assert counts.min() >= 20
    pairs = {"one": ["a", " b", "c", "e", "g", "g"], "two": ["b", "c", "d", "f", "h", "i"]}
    chained = divided(pairs, held=["d"], training=["a", "e", "g"])["part"].to_list()
    assert chained[:3] == ["judge"] * 3
    assert chained[4] == chained[5]


@pytest.mark.parametrize("grouped", [False, True])
def test_copies_of_other_case_blanks_and_punctuation_get_the_same_part(grouped):
    """Regression: a test row was learnt from its copy, and a classifier of random labels was right on 86 %."""
    texts = numbered(100, "Is number {} odd?")
    copies = [text.upper() for text in texts] + [text.replace("?", " ! ") for text in texts]
    found = divided([*texts, *copies], groups=range(300) if grouped else None, held=["IS NUMBER 7 ODD"])
    parts = found["part"].to_numpy().reshape(3, 100)
    assert (parts == parts[0]).all()
    assert {*parts[0]} == {"judge", "teach"}
    assert parts[0, 7] == "judge"


@pytest.mark.parametrize("seed", range(5))
def test_large_connected_group_is_divided_by_text(seed):
    """800 pairs of 40 sentences, some of which are held out or learnt."""
    draw = np.random.default_rng(seed)
    sides = {name: [f"Sentence {n}." for n in draw.integers(0, 40, 800)] for name in ("one", "two")}
    held, learnt = ["Sentence 0.", "Sentence 1."], ["Sentence 2.", "Sentence 3."]
    found = divided(sides, held=held, training=learnt, seed=seed)
    first, second = (found.filter(part=part) for part in ("judge", "teach"))
    one, other = ({*part["one"], *part["two"]} for part in (first, second))
    assert one.isdisjoint(other)
    assert other.isdisjoint(held)
    assert min(first.height, second.height) >= 10
    rows = found.with_columns(label=(pl.int_range(pl.len()) % 5).cast(pl.String))
    assert usable_rows(rows, "pairs", "adapt").height == 800 - found["part"].null_count()


@pytest.mark.parametrize(("held", "learnt"), [(["Question 1.", "Question 2."], ["x"]), (["x"], ["It is bad."])])
def test_copies_with_other_sentences_get_the_same_part_in_a_large_connected_group(held, learnt):
    """Regression: a lower-case copy has one sentence instead of two, so one was a test text and the other training."""
    texts = numbered(40, "Question {}. It is bad.")
    both = [*texts, *(text.lower() for text in texts)]
    draw = np.random.default_rng(0)
    sides = {name: [both[n] for n in draw.integers(0, len(both), 1600)] for name in ("one", "two")}
    found = divided(sides, held=held, training=learnt).drop_nulls("part")
    test, training = (
        {text.lower() for name in sides for text in found.filter(part=part)[name]} for part in ("judge", "teach")
    )
    assert test.isdisjoint(training)
    assert min(len(test), len(training)) >= 5
    assert {text.lower() for text in texts[1:3]} <= test or learnt == ["It is bad."]


@pytest.mark.parametrize("groups", [4, 20, 150])
def test_no_group_is_in_both_parts_and_half_of_the_rows_are_test_labels(groups):
    found = divided(numbered(ROWS), groups=[f"writer {number % groups}" for number in range(ROWS)])
    assert found.group_by("document").agg(pl.col("part").n_unique())["part"].unique().to_list() == [1]
    assert found.filter(part="judge").height == pytest.approx(ROWS / 2, abs=ROWS / groups)


def test_groups_of_uneven_size_are_balanced_by_rows():
    """One writer in two wrote a hundred times as much: a draw of each alone would often put both in one part."""
    groups = ["a"] * 150 + ["b"] * 150 + numbered(100, "c{}")
    counts = [divided(numbered(ROWS), groups=groups, seed=seed).filter(part="judge").height for seed in range(20)]
    assert min(counts) >= 100
    assert max(counts) <= 300


def test_groups_of_a_held_out_or_shared_text_are_in_one_part():
    """Two writers answered the same question, so both are in one part."""
    texts, groups = numbered(ROWS), [f"w{number % 40}" for number in range(ROWS)]
    found = divided(texts, groups=groups, held=texts[:1])
    assert found.filter(document="w0")["part"].unique().to_list() == ["judge"]
    texts[1] = texts[0]
    for seed in range(10):
        found = divided(texts, groups=groups, seed=seed)
        assert found.filter(pl.col("document").is_in(["w0", "w1"]))["part"].n_unique() == 1


def test_training_rows_with_a_test_text_are_unused_if_texts_connect_all_writers():
    """Every writer scored every pair: writers decide, and no text is in both parts."""
    pairs = {"one": [f"Question {number // 10}." for number in range(ROWS)], "two": numbered(ROWS, "Answer {} only.")}
    found = divided(pairs, groups=[f"w{number % 10}" for number in range(ROWS)])
    assert found.drop_nulls("part").group_by("document").agg(pl.col("part").n_unique())["part"].max() == 1
    assert found.filter(part="judge").height > 0
    assert set(found.filter(part="judge")["one"]).isdisjoint(found.filter(part="teach")["one"])


def test_groups_that_share_all_texts_are_divided_alike_in_each_call():
    """Regression: every writer scored every pair, and each call drew other writers, so test labels were learnt."""
    pairs = {"one": [f"Question {number % 40}." for number in range(ROWS)], "two": ["Answer."] * ROWS}
    writers = [f"w{number // 40}" for number in range(ROWS)]

    def judging(seed, step=1):
        found = divided({name: side[::step] for name, side in pairs.items()}, groups=writers[::step], seed=seed)
        return {*found.filter(part="judge")["document"]}

    drawn = [judging(seed) for seed in range(5)]
    assert [judging(seed, step=-1) for seed in range(5)] == drawn
    assert {len(names) for names in drawn} == {5}
    assert len({frozenset(names) for names in drawn}) > 1


def test_class_pairs_are_balanced_and_scored_by_class():
    texts = [*numbered(30), "alone in its class"]
    classes = np.array([*[0, 1, 2] * 10, 3])
    pairs = class_pairs(texts, classes)
    of = dict(zip(texts, classes, strict=True))
    same = [of[one] == of[two] for one, two in pairs.select("sentence1", "sentence2").iter_rows()]
    assert pairs["score"].to_list() == [1.0 if alike else 0.0 for alike in same]
    assert pairs["score"].mean() == 0.5
    assert pairs.height == 30 * 2 * PARTNERS
    assert (pairs["sentence1"] != pairs["sentence2"]).all()
    assert "alone in its class" not in pairs["sentence1"].to_list()
    assert pairs.equals(class_pairs(texts, classes))
    with pytest.raises(TrainingError, match="2 labelled texts of 1 classes, expected at least two classes"):
        class_pairs(["a", "b"], np.array([0, 0]))


def test_scores_are_scaled_linearly_to_unit_range():
    assert shares(pl.Series([1, 3, 5])).to_list() == [0.0, 0.5, 1.0]
    with pytest.raises(TrainingError, match="all 2 scores are 4, expected different"):
        shares(pl.Series([4.0, 4.0]))
    with pytest.raises(TrainingError, match="no training labels"):
        shares(pl.Series([], dtype=pl.Float64))


def labelled(names=("teach", "judge"), /, **counts):
    """Return labelled rows by label: how many are of each part."""
    rows = [(label, names[part]) for label, parts in counts.items() for part in (0, 1) for _ in range(parts[part])]
    return pl.DataFrame(rows, schema={"label": pl.String, "part": pl.String}, orient="row")


def test_class_with_too_few_labels_of_a_part_is_dropped():
    rows = labelled(good=(30, 12), bad=(30, 12), untaught=(1, 9), unseen=(0, 9), unjudged=(9, 6))
    kept = usable_rows(rows, "classes", "adapt")
    assert kept["label"].unique().sort().to_list() == ["bad", "good"]
    assert kept.height == 84


@every([
    ("adapt", "classes", {"a": (4, 0), "b": (2, 2)}, "8 rows .2 test labels, .*: 0 of 2 classes have enough rows"),
    ("adapt", "classes", {"a": (38, 14), "b": (1, 14)}, "1 of 2 .* with 7 test labels and 2 training labels each"),
    ("adapt", "classes", {"a": (50, 0), "b": (50, 0)}, "0 of 2 classes .* Label at least 30 different texts of each"),
    ("adapt", "classes", {"a": (50, 9), "b": (50, 9)}, "18 usable test labels, expected at least 20.* least 60 rows"),
    ("adapt", "classes", {"a": (0, 50), "b": (0, 50)}, "0 of 2 classes have enough rows"),
    ("adapt", "pairs", {"1": (50, 10), "5": (50, 9)}, "19 usable test labels, expected at least 20"),
    ("adapt", "pairs", {"1": (50, 30), "5": (50, 0)}, "all test labels have the score 1, expected different"),
    ("judge", "classes", {"a": (30, 6), "b": (30, 30)}, "96 rows .36 test labels, .*: 1 of 2 classes"),
    ("judge", "classes", {"a": (30, 6), "b": (30, 30)}, "with 7 test labels each.* at least 20 different texts of"),
    ("judge", "pairs", {"1": (50, 10), "5": (50, 9)}, "19 usable test labels, expected at least 20.* at least 40 rows"),
])  # fmt: skip
def test_insufficient_labels_error_names_counts_and_fix(use, kind, counts, message):
    with pytest.raises(EvaluationError, match=message):
        usable_rows(labelled(("teach" if use == "adapt" else None, "judge"), **counts), kind, use)


def test_error_counts_different_texts():
    """Regression: three texts, labelled a hundred times each, were asked for 30 rows of each class."""
    rows = pl.DataFrame({"text_1": ["x", "y", "z"] * 20, "label": ["a", "b", "a"] * 20, "part": ["judge"] * 60})
    with pytest.raises(EvaluationError, match=r"^labels: 60 rows of 3 different texts .*at least 30 different"):
        usable_rows(rows, "classes", "adapt")


def test_part_of_a_single_group_is_refused():
    rows = labelled(a=(60, 60)).with_columns(label=pl.Series(["a", "b"] * 60), document=pl.int_range(pl.len()))
    assert usable_rows(rows, "classes", "adapt").height == 120
    one = rows.with_columns(document=pl.when(part="judge").then(-1).otherwise("document"))
    with pytest.raises(EvaluationError, match=r"1 groups? among the test labels, expected at least 2\."):
        usable_rows(one, "classes", "adapt")


def test_groups_that_all_have_held_out_text_are_named_as_the_reason():
    """Regression: three books of text and labels were asked for more texts of each class."""
    rows = labelled(("judge", "judge"), a=(60, 60), b=(60, 60)).with_columns(document=pl.int_range(pl.len()) % 3)
    with pytest.raises(EvaluationError, match=r"each of 3 groups of --document has held-out text, .* Give 20 groups"):
        usable_rows(rows, "classes", "adapt")
