"""What decides an adaptation, and what may forbid it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.sparse import csr_array

from models.evaluation.correlation import cosine_scores, spearman
from models.evaluation.labels import Labelled, centroid_accuracy, class_accuracy, neighbour_accuracy
from models.evaluation.own_text import METRIC
from models.evaluation.proof import BeforeAfter, evidence
from models.evaluation.retrieval import Retrieval, reciprocal_ranks
from models.evaluation.significance.hierarchical import difference_of, draws_of
from models.evaluation.sweep import MEAN, SetDraws, mean_of, outcome_draws
from models.evaluation.verdict import judged
from tests.every import every

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from models.evaluation.proof import Role
    from models.evaluation.retrieval import Encode

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
    for name in ("title", "neighbour", "round trip", "crop"):
        probe = _probe(name)
        ranks = [reciprocal_ranks(encode, probe)[None] for encode in encoders]
        found.append(SetDraws(name, METRIC, "text", outcome_draws(ranks, probe.unit, **DRAWS), n=len(probe)))
    return found


def test_text_questions_alone_give_verdict_not_proved() -> None:
    rows = evidence(_asked(_encoder(1.2), _encoder(0.9)))
    assert [(row.evidence, row.metric, row.role) for row in rows] == [
        (name, "MRR", "shown") for name in ("title", "neighbour", "round trip", "crop")
    ]
    assert min(row.ci_low for row in rows) > 0
    verdict = judged(rows, 0.5)
    assert verdict.word == "NOT PROVED"
    found = re.search(r"About ([\d,]+) test labels", verdict.advice)
    assert found is not None
    wanted = int(found[1].replace(",", ""))
    expected = max(400, *(ROWS * ((row.ci_high - row.ci_low) / 2 / 0.02) ** 2 for row in rows))
    assert expected <= wanted < expected + 100


def _row(role: Role, difference: float, half: float = 0.001) -> BeforeAfter:
    spread = (difference, difference - half, difference + half, 0.01)
    return BeforeAfter("some set", "Spearman", role, 0.5, 0.5 + difference, *spread, 10)


def _question(difference: float) -> BeforeAfter:
    return replace(_row("shown", difference), metric="MRR")


@every(
    [
        ([_row("counts", 0.02), _row("guard", -0.004)], "BETTER"),
        ([_row("counts", 0.02), _row("guard", -0.006)], "WORSE"),
        ([_row("counts", 0.0005), _row("guard", 0.02)], "NO DIFFERENCE"),
        ([_row("counts", -0.02)], "WORSE"),
        ([_question(0.02)], "NOT PROVED"),
        ([_question(0.02), _row("guard", 0.02)], "NOT PROVED"),
        ([_question(0.02), _row("guard", -0.02)], "WORSE"),
    ]
)
def test_better_requires_label_gain_without_forgetting(rows: list[BeforeAfter], word: str) -> None:
    verdict = judged(rows, 0.5)
    assert verdict.word == word
    assert ("You get the original encoder" in verdict.advice) is (word != "BETTER")


def test_advice_names_labels_or_label_training() -> None:
    assert judged([_row("counts", 0.0005)], 0.5).advice.endswith("More labels may show one.")
    assert "label_training" in judged([_row("counts", -0.02)], 0.5).advice


def test_advice_names_max_forgetting_that_allows_the_loss() -> None:
    rows = [_row("counts", 0.02), _row("guard", -0.0062)]
    verdict = judged(rows, 0.5)
    found = re.search(r"\+2\.00 \[.*--set proof\.max_forgetting=([\d.]+)\.$", verdict.advice)
    assert found is not None
    assert judged(rows, float(found[1])).word == "BETTER"
    assert "max_forgetting" not in judged([_row("counts", 0.0005), rows[1]], 0.5).advice


@pytest.mark.parametrize(
    ("half", "said"), [(0.001, "exceeds the allowed 0.5 points"), (0.02, "although its interval includes 0")]
)
def test_general_loss_decides_by_size_and_reports_its_interval(half: float, said: str) -> None:
    verdict = judged([_row("counts", 0.02), _row("guard", -0.006, half)], 0.5)
    assert verdict.word == "WORSE"
    assert "-0.60 [" in verdict.reason
    assert verdict.reason.endswith(said)


def test_label_evidence_comes_first_with_role_counts() -> None:
    numbers = np.arange(ROWS)
    first = [f"{number}a" for number in numbers]
    second = [f"{number if number % 2 else (number + 2) % ROWS}b" for number in numbers]
    gold = (numbers % 2).astype(float)
    encoders = _encoder(2.0), _encoder(0.5)
    cosines = [cosine_scores(encode(first), encode(second)) for encode in encoders]
    drawn = tuple(draws_of(gold, own[None], **DRAWS) for own in cosines)
    labels = SetDraws("your labels", "spearman", "labels", drawn, n=ROWS)
    row = evidence([*_asked(*encoders), labels])[0]
    scores = [spearman(own, gold) for own in cosines]
    assert (row.before, row.after) == pytest.approx(scores)
    assert row.difference == pytest.approx(scores[1] - scores[0])
    assert (row.evidence, row.metric, row.role, row.n) == ("your labels", "Spearman", "counts", ROWS)
    assert row.ci_low > 0


def test_general_sets_are_guards_and_their_mean_is_shown() -> None:
    ranks = [np.random.default_rng(seed).random((1, ROWS)) for seed in range(2)]
    drawn = outcome_draws(ranks, np.arange(ROWS), **DRAWS)
    sets = [
        SetDraws("stsb", "spearman", "stsb test", drawn, "test", n=ROWS),
        SetDraws("askubuntu", "average precision", "askubuntu test", drawn, "test", "useb", ROWS),
    ]
    rows = evidence([*sets, mean_of(sets, metric="spearman")])
    assert [(row.evidence, row.metric, row.role) for row in rows] == [
        ("stsb test", "Spearman", "guard"),
        ("askubuntu test (useb)", "average precision", "guard"),
        (MEAN, "Spearman", "shown"),
    ]


def test_class_accuracy_averages_probe_neighbours_and_centroids() -> None:
    """A probe finds classes along a line; distances, dominated by other dimensions, do not."""
    gold = np.arange(ROWS) % 2
    vectors = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
    vectors[:, 0] = (gold - 0.5) * 0.2
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = unit @ unit.T
    np.fill_diagonal(near, -np.inf)
    searched = neighbour_accuracy(vectors, gold)
    assert np.array_equal(searched, gold[near.argmax(axis=1)] == gold)
    centroids = centroid_accuracy(vectors, gold)
    classes = Labelled("classes", tuple(map(str, range(ROWS))), (), gold.astype(float), ("no", "yes"))
    probed = 3 * class_accuracy(vectors, classes) - searched - centroids
    assert np.allclose(probed, probed.round())
    assert probed.mean() > 0.9 > 0.7 > max(searched.mean(), centroids.mean())


def test_class_accuracy_is_equal_for_sparse_and_dense_vectors() -> None:
    vectors = np.random.default_rng(0).poisson(0.3, size=(ROWS, 40)).astype(np.float32)
    gold = np.argmax(vectors[:, :3], axis=1)
    classes = Labelled("classes", tuple(map(str, range(ROWS))), (), gold.astype(float), ("a", "b", "c"))
    dense, sparse = class_accuracy(vectors, classes), class_accuracy(csr_array(vectors), classes)
    assert dense.mean() > 0.6
    assert np.allclose(dense, sparse)


def test_class_accuracy_excludes_the_example_itself() -> None:
    """Vectors without any order: accuracies are by chance, half; an example in its own centroid would be found."""
    gold = np.arange(ROWS) % 2
    vectors = np.random.default_rng(1).normal(size=(ROWS, 64)).astype(np.float32)
    assert abs(neighbour_accuracy(vectors, gold).mean() - 0.5) < 0.12
    assert abs(centroid_accuracy(vectors, gold).mean() - 0.5) < 0.05
    rare = np.where(np.arange(ROWS) < 3, 2, gold)  # one example of three, fewer than five
    assert centroid_accuracy(np.eye(3, dtype=np.float32)[rare], rare).mean() == 1


def test_class_accuracy_separates_good_and_uninformative_encoders() -> None:
    texts = tuple(f"{number}a" for number in range(ROWS))
    encode = _encoder(0.0)
    gold = (encode(texts)[:, 0] > 0).astype(float)
    classes = Labelled("classes", texts, (), gold, ("no", "yes"))
    right = class_accuracy(encode(texts), classes)
    assert right.mean() > 0.7
    blind = class_accuracy(_encoder(0.0, seed=9)(texts), classes)
    drawn = outcome_draws([blind[None], right[None]], np.arange(ROWS), resamples=200, seed=0)
    assert difference_of(*drawn).ci_low > 0.2
