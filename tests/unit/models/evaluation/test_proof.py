"""What decides an adaptation, and what may forbid it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.evaluation.labels import Labelled, centroid_accuracy, class_accuracies, labelled_of, neighbour_accuracy
from bsl.models.evaluation.own_text import METRIC
from bsl.models.evaluation.probe.problem import Part, make_problem
from bsl.models.evaluation.proof import QUESTIONS, AdaptationComparison, adaptation_comparisons
from bsl.models.evaluation.retrieval import Retrieval, reciprocal_ranks
from bsl.models.evaluation.significance.hierarchical import difference_of, draws_of
from bsl.models.evaluation.sweep import MEAN, SetDraws, mean_of, outcome_draws
from bsl.models.evaluation.verdict import adaptation_verdict
from tests.every import every

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsl.models.evaluation.proof import Role
    from bsl.models.evaluation.retrieval import Encode
    from bsl.models.evaluation.uses import UseName
    from bsl.models.evaluation.verdict import Verdict

ROWS = 200
DRAWS = {"resamples": 200, "seed": 0}


def _encoder(noise: float, seed: int = 0) -> Encode:
    """Texts `<number><side>` to vectors that the two sides of a number share, up to noise."""
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(ROWS, 16))
    errors = {side: generator.normal(size=(ROWS, 16)) * noise for side in "ab"}

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([table[int(text[:-1])] + errors[text[-1]][int(text[:-1])] for text in texts], dtype=np.float32)

    return encode


def _probe(name: str) -> Retrieval:
    numbers = np.arange(ROWS)
    sides = [tuple(f"{number}{side}" for number in numbers) for side in "ab"]
    return Retrieval(name, sides[0], sides[1], numbers, numbers // 4, np.full(ROWS, -1))


def _asked(*encoders: Encode) -> list[SetDraws]:
    """Return both encoders' draws of every kind of question."""
    found = []
    for name in ("title", "neighbour", "crop"):
        probe = _probe(name)
        ranks = [reciprocal_ranks(encode, probe)[None] for encode in encoders]
        found.append(SetDraws(name, METRIC, "text", outcome_draws(ranks, probe.unit, **DRAWS), n=len(probe)))
    return found


def judged(rows: Sequence[AdaptationComparison], max_forgetting: float = 0.5) -> Verdict:
    return adaptation_verdict(rows, max_forgetting, "proof.shares=[0.125]")


def test_text_questions_alone_give_verdict_not_proved() -> None:
    rows = adaptation_comparisons(_asked(_encoder(1.2), _encoder(0.9)), None)
    assert [(row.evidence, row.metric, row.use, row.role) for row in rows] == [
        (QUESTIONS, "MRR", "search", "reported"),
        *((name, "MRR", None, "reported") for name in ("title", "neighbour", "crop")),
    ]
    assert min(row.ci_low for row in rows) > 0
    verdict = judged(rows)
    assert verdict.headline == "NOT PROVED"
    found = re.search(r"label about ([\d,]+) rows \(half are for the test\)", verdict.advice)
    assert found is not None
    wanted = int(found[1].replace(",", "")) // 2
    expected = max(400, *(ROWS * ((row.ci_high - row.ci_low) / 2 / 0.02) ** 2 for row in rows[1:]))
    assert expected <= wanted < expected + 100


def test_mean_of_the_questions_decides_about_search() -> None:
    rows = adaptation_comparisons(_asked(_encoder(1.2), _encoder(0.9)), "search")
    mean, *parts = rows
    assert (mean.evidence, mean.use, mean.role, mean.n) == (QUESTIONS, "search", "decides", 3 * ROWS)
    assert mean.after == pytest.approx(np.mean([row.after for row in parts]))
    assert mean.difference == pytest.approx(np.mean([row.difference for row in parts]))
    assert judged(rows).headline == "BETTER for search in your text"


def test_questions_that_resemble_the_training_answer_for_no_use() -> None:
    drawn = _asked(_encoder(1.2), _encoder(0.9))
    rows = adaptation_comparisons(drawn, "search", {"crop"})
    assert rows[0].after == pytest.approx(
        np.mean([row.after for row in rows if row.evidence in ("title", "neighbour")])
    )
    (alone,) = adaptation_comparisons([one for one in drawn if one.dataset == "crop"], "search", {"crop"})
    assert (alone.use, alone.role) == (None, "reported")


def _row(role: Role, difference: float, half: float = 0.001, use: UseName | None = None) -> AdaptationComparison:
    spread = (difference, difference - half, difference + half, 0.01)
    use = "classify" if role == "decides" and use is None else use
    return AdaptationComparison("some set", "Spearman", use, role, 0.5, 0.5 + difference, *spread, 10)


def _search(difference: float, role: Role = "reported") -> AdaptationComparison:
    return replace(_row(role, difference, use="search"), metric="MRR")


@every(
    [
        ([_row("decides", 0.02), _row("vetoes", -0.004)], "BETTER for classifying"),
        ([_row("decides", 0.02), _row("vetoes", -0.006)], "WORSE for general text"),
        ([_row("decides", 0.0005), _row("vetoes", 0.02)], "NO DIFFERENCE for classifying"),
        ([_row("decides", -0.02)], "WORSE for classifying"),
        ([_row("decides", 0.02, use="similarity")], "BETTER for similarity"),
        ([_search(0.02, "decides"), _row("reported", -0.02, use="classify")], "BETTER for search in your text"),
        ([_search(0.02)], "NOT PROVED"),
        ([_search(0.02), _row("vetoes", 0.02)], "NOT PROVED"),
        ([_search(0.02), _row("vetoes", -0.02)], "WORSE for general text"),
    ]
)
def test_better_requires_a_gain_in_the_deciding_use_without_forgetting(
    rows: list[AdaptationComparison], headline: str
) -> None:
    verdict = judged(rows)
    assert verdict.headline == headline
    assert ("You get the original encoder" in verdict.advice) is (verdict.word != "BETTER")


@every(
    [
        (
            [_row("decides", 0.08)],
            "+8.00 [+7.90, +8.10], but worse for search in your text: MRR × 100 50.0 → 39",
        ),
        ([_row("decides", 0.0)], "-0.10, +0.10], but worse for search in your text: "),
        ([_row("decides", -0.02)], "and worse for search in your text: "),
        ([_row("decides", 0.02), _row("vetoes", -0.02)], "allowed 0.5 points, and worse for search in your text: "),
        (
            [_row("decides", -0.02), _row("vetoes", -0.02)],
            "points, and worse for classifying: Spearman × 100 50.0 → 48.0, -2.00 [-2.10, -1.90] and worse for search",
        ),
        ([], "do not predict a gain on labels, and the adapted encoder is worse for search in your text: "),
    ]
)
def test_loss_of_another_use_stands_in_the_sentence_of_every_verdict(
    rows: list[AdaptationComparison], said: str
) -> None:
    """Regression: + 27.3 BETTER, while questions about the text fell from 17.6 to 7.0, "reported only"."""
    verdict = judged([*rows, _search(-0.106)])
    assert said in verdict.sentence
    assert said in verdict.finding


def test_insignificant_loss_of_another_use_is_not_in_the_sentence() -> None:
    assert "worse" not in judged([_row("decides", 0.08), replace(_search(-0.02), ci_high=0.001)]).finding


def test_advice_after_a_loss_names_both_encoders_and_remedies() -> None:
    advice = judged([_row("decides", 0.08), _search(-0.106), _row("reported", -0.05, use="group")]).advice
    assert "the adapted encoder for classifying on text of this kind" in advice
    assert "the original encoder for search in your text and grouping and few examples" in advice
    assert "--set proof.shares=[0.125]" in advice
    assert "--for lets another use decide" in advice


def test_advice_without_a_gain_names_the_use_that_gained() -> None:
    gain = _row("reported", 0.27, use="group")
    for deciding in (_row("decides", 0.0), _row("decides", -0.02)):
        assert (
            "better for grouping and few examples (--for group), Spearman × 100 50.0 → 77.0"
            in judged([deciding, gain]).advice
        )
    assert "--for group" not in judged([_row("decides", 0.02), gain]).advice


@every([("decides", "classify"), ("reported", "group"), ("reported", "search"), ("vetoes", None)])
def test_advice_says_if_a_classifier_on_the_original_encoder_is_as_good(role: Role, use: UseName | None) -> None:
    """Whatever decides; silent if the classifier gains or loses significantly, or was not tested."""
    said = (
        "A classifier needs no adaptation: on 10 test rows, one on the original encoder's vectors is as good within "
        "noise (accuracy × 100 50.0, on the adapted encoder's 50.2)."
    )
    others = [] if use == "classify" else [_row("decides", 0.05, use="similarity"), _row(role, -0.02, use=use)]
    for difference, half, is_same in [(0.002, 0.003, True), (0.002, 0.001, False), (-0.002, 0.001, False)]:
        row = _row("decides" if use == "classify" else "reported", difference, half, "classify")
        assert judged([*others, replace(row, metric="accuracy")]).advice.count(said) == is_same
    assert "no adaptation" not in judged([_row("decides", 0.0, use="similarity")]).advice


def test_advice_names_labels_or_label_training() -> None:
    assert "More labels may show a difference." in judged([_row("decides", 0.0005)]).advice
    assert "More text may show a difference." in judged([_search(0.0005, "decides")]).advice
    assert "label_training" in judged([_row("decides", -0.02)]).advice


def test_advice_names_max_forgetting_that_allows_the_loss() -> None:
    rows = [_row("decides", 0.02), _row("vetoes", -0.0062)]
    verdict = judged(rows)
    found = re.search(r"\+2\.00 \[.*--set proof\.max_forgetting=([\d.]+)\.$", verdict.advice)
    assert found is not None
    assert judged(rows, float(found[1])).word == "BETTER"
    assert "max_forgetting" not in judged([_row("decides", 0.0005), rows[1]]).advice


@pytest.mark.parametrize(
    ("half", "said"), [(0.001, "exceeds the allowed 0.5 points"), (0.02, "although its interval includes 0")]
)
def test_general_loss_decides_by_size_and_reports_its_interval(half: float, said: str) -> None:
    verdict = judged([_row("decides", 0.02), _row("vetoes", -0.006, half)])
    assert verdict.word == "WORSE"
    assert "-0.60 [" in verdict.reason
    assert verdict.reason.endswith(said)


def test_labels_of_the_deciding_use_come_first() -> None:
    numbers = np.arange(ROWS)
    first = [f"{number}a" for number in numbers]
    second = [f"{number if number % 2 else (number + 2) % ROWS}b" for number in numbers]
    gold = (numbers % 2).astype(float)
    encoders = _encoder(2.0), _encoder(0.5)
    cosines = [cosine_scores(encode(first), encode(second)) for encode in encoders]
    drawn = tuple(draws_of(gold, own[None], **DRAWS) for own in cosines)
    labels = SetDraws("your labels", "spearman", "labels", drawn, n=ROWS)
    row, search, *_ = adaptation_comparisons([*_asked(*encoders), labels], "similarity")
    assert (search.use, search.role) == ("search", "reported")
    scores = [spearman(own, gold) for own in cosines]
    assert (row.before, row.after) == pytest.approx(scores)
    assert row.difference == pytest.approx(scores[1] - scores[0])
    assert (row.evidence, row.metric, row.role, row.n) == ("your labels", "Spearman", "decides", ROWS)
    assert row.ci_low > 0


@every(
    [
        ("classify", "BETTER for classifying", "but worse for search in your text: MRR"),
        ("search", "WORSE for search in your text", "The adapted encoder is better for classifying (--for classify), "),
    ]
)
def test_use_asked_for_decides_about_the_same_training(use: UseName, headline: str, said: str) -> None:
    """Classes gain and search loses: `--for classify` exports the adapted encoder, `--for search` the original one."""
    right = [np.random.default_rng(0).random((1, ROWS)) < share for share in (0.5, 0.9)]
    drawn = outcome_draws([one.astype(float) for one in right], np.arange(ROWS), **DRAWS)
    labels = SetDraws("your labels", "accuracy", "labels", drawn, n=ROWS)
    verdict = judged(adaptation_comparisons([labels, *_asked(_encoder(0.9), _encoder(1.2))], use))
    assert verdict.headline == headline
    assert said in verdict.finding


def test_general_sets_veto_and_their_mean_is_reported() -> None:
    ranks = [np.random.default_rng(seed).random((1, ROWS)) for seed in range(2)]
    drawn = outcome_draws(ranks, np.arange(ROWS), **DRAWS)
    sets = [
        SetDraws("stsb", "spearman", "stsb test", drawn, "test", n=ROWS),
        SetDraws("toy", "average precision", "toy test", drawn, "test", "ranked", ROWS),
    ]
    rows = adaptation_comparisons([*sets, mean_of(sets, metric="spearman")], "classify")
    assert {row.use for row in rows} == {None}
    assert [(row.evidence, row.metric, row.role) for row in rows] == [
        ("stsb test", "Spearman", "vetoes"),
        ("toy test (ranked)", "average precision", "vetoes"),
        (MEAN, "Spearman", "reported"),
    ]


def _classes(gold: NDArray[np.int64], *names: str) -> Labelled:
    return Labelled("classes", tuple(f"text {number}" for number in range(len(gold))), (), gold.astype(float), names)


def test_classifier_and_grouping_accuracies_are_not_averaged() -> None:
    """A classifier finds classes along a line; distances, dominated by other dimensions, do not."""
    gold = np.arange(ROWS) % 2
    vectors = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
    vectors[:, 0] = (gold - 0.5) * 0.2
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = unit @ unit.T
    np.fill_diagonal(near, -np.inf)
    alone = np.arange(ROWS)
    searched = neighbour_accuracy(vectors, gold, alone)
    assert np.array_equal(searched, gold[near.argmax(axis=1)] == gold)
    found = class_accuracies(vectors, _classes(gold, "no", "yes"))
    assert np.allclose(found.grouping, (searched + centroid_accuracy(vectors, gold, alone)) / 2)
    assert set(found.classifier) <= {0.0, 1.0}
    assert found.classifier.mean() > 0.9 > 0.7 > found.grouping.mean()


@pytest.mark.parametrize("of_the_rarer_class", [2, 50])
def test_classifier_learns_from_training_rows_only(of_the_rarer_class: int) -> None:
    """The training rows have their classes exchanged; a class may have fewer rows than there are folds."""
    gold = (np.arange(ROWS) % 2).astype(np.int64)
    vectors = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32) + 4 * gold[:, None]
    learnt = np.concatenate([np.flatnonzero(gold == 0)[:50], np.flatnonzero(gold == 1)[:of_the_rarer_class]])
    names = ("no", "yes")
    training = (vectors[learnt], _classes(1 - gold[learnt], *names))
    found = class_accuracies(vectors, _classes(gold, *names), training)
    assert found.classifier.mean() < 0.1
    assert np.array_equal(found.grouping, class_accuracies(vectors, _classes(gold, *names)).grouping)
    training = (vectors[learnt], _classes(gold[learnt], *names))
    assert class_accuracies(vectors, _classes(gold, *names), training).classifier.mean() > 0.9


def test_class_accuracies_are_equal_for_sparse_and_dense_vectors() -> None:
    vectors = np.random.default_rng(0).poisson(0.3, size=(ROWS, 40)).astype(np.float32)
    gold = np.argmax(vectors[:, :3], axis=1)
    classes = Labelled("classes", tuple(map(str, range(ROWS))), (), gold.astype(float), ("a", "b", "c"))
    dense, sparse = class_accuracies(vectors, classes), class_accuracies(csr_array(vectors), classes)
    assert dense.classifier.mean() > 0.6
    assert np.allclose(dense.classifier, sparse.classifier)
    assert np.allclose(dense.grouping, sparse.grouping)


def test_probe_of_many_rows_and_classes_predicts_as_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    gold = np.repeat(np.arange(8), 16)
    centres = random.standard_normal((8, 12))
    vectors = (centres[gold] + 1.3 * random.standard_normal((128, 12))).astype(np.float32)
    classes = Labelled(
        "classes", tuple(f"text {row}" for row in range(128)), (), gold.astype(np.float64), tuple(map(str, range(8)))
    )
    found = []
    for cells in (0, 1 << 60):
        monkeypatch.setattr("bsl.models.evaluation.labels.MANY_CELLS", cells)
        monkeypatch.setattr("bsl.models.evaluation.labels._RECENT", {})
        found.append(class_accuracies(vectors, classes).classifier)
    assert 0.5 < found[1].mean() < 0.95
    assert found[0].mean() == pytest.approx(found[1].mean(), abs=0.001)


def test_grouping_excludes_the_example_itself() -> None:
    """Vectors without any order: accuracies are by chance, half; an example in its own centroid would be found."""
    gold = np.arange(ROWS) % 2
    vectors = np.random.default_rng(1).normal(size=(ROWS, 64)).astype(np.float32)
    alone = np.arange(ROWS)
    assert abs(neighbour_accuracy(vectors, gold, alone).mean() - 0.5) < 0.12
    assert abs(centroid_accuracy(vectors, gold, alone).mean() - 0.5) < 0.05
    rare = np.where(np.arange(ROWS) < 3, 2, gold)  # one example of three, fewer than five
    assert centroid_accuracy(np.eye(3, dtype=np.float32)[rare], rare, alone).mean() == 1


@every(
    [("document", [f"writer {row % 40}" for row in range(ROWS)]), ("text_1", [f"t{row % 40}" for row in range(ROWS)])]
)
def test_no_row_is_judged_by_rows_of_its_group_or_with_its_text(column: str, values: list[str]) -> None:
    """Regression: vectors know only the writer, whose rows have one class: accuracies were 1, not those of chance."""
    writer = np.arange(ROWS) % 40
    gold = np.random.default_rng(3).permutation(np.arange(40) % 2)[writer]
    vectors = np.random.default_rng(1).normal(size=(40, 64)).astype(np.float32)[writer]
    alone = {"text_1": [f"text {row}" for row in range(ROWS)], "label": gold.astype(str)}
    rows = pl.DataFrame({**alone, column: values})
    leaking = class_accuracies(vectors, labelled_of(pl.DataFrame(alone), "classes"))
    assert leaking.classifier.mean() > 0.95
    assert leaking.grouping.mean() > 0.75
    found = class_accuracies(vectors, labelled_of(rows, "classes"))
    assert 0.2 < found.classifier.mean() < 0.8
    assert 0.2 < found.grouping.mean() < 0.65


def test_folds_of_a_search_and_of_its_test_divide_no_unit() -> None:
    units, labels = np.arange(120) % 24, np.arange(120) % 3
    part = Part(np.zeros((120, 2), dtype=np.float32), labels, np.random.default_rng(0).permutation(120), units)
    problem = make_problem("grouped", "nested", {"all": part}, ("a", "b", "c"), folds=4, seed=0)
    of_rows = units[part.order]
    assert sorted(row for outer in problem.folds for row in outer.test) == list(range(120))
    for outer in problem.folds:
        for fit, judged_rows in [(outer.train, outer.test), *((one.fit, one.dev) for one in outer.inner)]:
            assert not set(of_rows[fit]) & set(of_rows[judged_rows])


def test_row_that_is_an_example_in_all_draws_has_no_centroid_accuracy() -> None:
    gold = np.array([0] * 20 + [1])
    vectors = np.eye(2, dtype=np.float32)[gold]
    found = centroid_accuracy(vectors, gold, np.arange(21))
    assert found.tolist()[:20] == [1.0] * 20
    assert np.isnan(found[20])


def test_grouping_accuracy_is_the_mean_of_what_a_row_has(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = np.arange(ROWS) % 2
    vectors = np.eye(2, dtype=np.float32)[gold]
    monkeypatch.setattr("bsl.models.evaluation.labels.DRAWS", 1)
    assert np.isnan(centroid_accuracy(vectors, gold, np.arange(ROWS))).sum() == 10
    classes = Labelled("classes", tuple(map(str, range(ROWS))), (), gold.astype(float), ("no", "yes"))
    assert class_accuracies(vectors, classes).grouping.tolist() == [1.0] * ROWS


def test_class_accuracies_of_threads_equal_that_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: threads removed old results from one dictionary at once."""
    monkeypatch.setattr("bsl.models.evaluation.labels._MOST_RECENT", 3)
    gold = np.arange(16) % 2
    classes = Labelled("classes", tuple(map(str, range(16))), (), gold.astype(float), ("no", "yes"))
    inputs = [np.random.default_rng(seed).normal(size=(16, 2)).astype(np.float32) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda vectors: class_accuracies(vectors, classes), inputs * 2))
    for number, vectors in enumerate(inputs[:4]):
        assert np.array_equal(found[number].classifier, class_accuracies(vectors, classes).classifier)
        assert np.array_equal(found[number].grouping, found[number + len(inputs)].grouping)


def test_class_accuracies_separate_good_and_uninformative_encoders() -> None:
    texts = tuple(f"{number}a" for number in range(ROWS))
    encode = _encoder(0.0)
    gold = (encode(texts)[:, 0] > 0).astype(float)
    classes = Labelled("classes", texts, (), gold, ("no", "yes"))
    right = class_accuracies(encode(texts), classes).classifier
    assert right.mean() > 0.7
    blind = class_accuracies(_encoder(0.0, seed=9)(texts), classes).classifier
    drawn = outcome_draws([blind[None], right[None]], np.arange(ROWS), resamples=200, seed=0)
    assert difference_of(*drawn).ci_low > 0.2
