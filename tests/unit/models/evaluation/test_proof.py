"""Scores before and after an adaptation: which decides, which may veto, and which are reported."""

import numpy as np
import pytest

from bsl.models.evaluation.proof import QUESTIONS, adaptation_comparisons
from bsl.models.evaluation.significance.hierarchical import BootstrapDraws, difference_of
from bsl.models.evaluation.sweep import MEAN, SetDraws, mean_of
from bsl.models.evaluation.uses import RECIPROCAL_RANK

ROWS = 200


def drawn(name, metric, group, before, after, **place):
    noise = np.random.default_rng(0).normal(0, 0.001, (200, 1))
    return SetDraws(
        name, metric, group, tuple(BootstrapDraws(np.array([x]), x + noise) for x in (before, after)), n=ROWS, **place
    )


ASKED = [
    drawn(name, RECIPROCAL_RANK, "text", 0.4, after)
    for name, after in [("title", 0.5), ("neighbour", 0.6), ("crop", 0.9)]
]
LABELS = drawn("your labels", "accuracy", "labels", 0.5, 0.9)


def places(rows):
    return [(row.evidence, row.metric, row.use, row.role, row.n) for row in rows]


QUESTION_ROWS = [(name, "MRR", None, "reported", ROWS) for name in ("title", "neighbour", "crop")]


@pytest.mark.parametrize(("deciding", "role"), [(None, "reported"), ("search", "decides")])
def test_mean_of_the_questions_answers_for_search(deciding, role):
    rows = adaptation_comparisons(ASKED, deciding)
    assert places(rows) == [(QUESTIONS, "MRR", "search", role, 3 * ROWS), *QUESTION_ROWS]
    assert (rows[0].before, rows[0].after, rows[0].difference) == pytest.approx((0.4, 2 / 3, 2 / 3 - 0.4))
    assert rows[0].ci_low == pytest.approx(2 / 3 - 0.4)


def test_questions_that_resemble_the_training_answer_for_no_use():
    rows = adaptation_comparisons(ASKED, "search", {"crop"})
    assert rows[0].after == pytest.approx((0.5 + 0.6) / 2)
    assert places(adaptation_comparisons(ASKED[2:], "search", {"crop"})) == QUESTION_ROWS[2:]


@pytest.mark.parametrize("deciding", ["classify", "search"])
def test_score_of_the_deciding_use_comes_first(deciding):
    first, second, *_ = adaptation_comparisons([*ASKED, LABELS], deciding)
    assert ((first.use, first.role), second.role) == ((deciding, "decides"), "reported")
    labels = first if deciding == "classify" else second
    assert (labels.evidence, labels.metric, labels.n) == ("your labels", "accuracy", ROWS)
    gain = difference_of(*LABELS.systems)
    assert (labels.before, labels.after) == (0.5, 0.9)
    assert (labels.difference, labels.ci_low, labels.p_value) == (gain.value, gain.ci_low, gain.p_value)


def test_general_sets_veto_unless_they_decide_nothing_and_their_mean_is_reported():
    sets = [
        drawn("stsb", "spearman", "stsb test", 0.5, 0.6, split="test"),
        drawn("toy", "average precision", "toy test", 0.5, 0.6, split="test", protocol="ranked"),
        drawn("excluded", "accuracy", "", 0.5, 0.6),
    ]
    assert places(adaptation_comparisons([*sets, mean_of(sets, metric="spearman")], "classify")) == [
        ("stsb test", "Spearman", None, "vetoes", ROWS),
        ("toy test (ranked)", "average precision", None, "vetoes", ROWS),
        ("excluded", "accuracy", None, "reported", ROWS),
        (MEAN, "Spearman", None, "reported", 2 * ROWS),
    ]
