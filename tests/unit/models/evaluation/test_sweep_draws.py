"""Comparison of methods by bootstrap draws: figures by hand, shared draws, corrections for multiple tests."""

import numpy as np
import pytest

from bsl.models.evaluation.significance.hierarchical import BootstrapDraws, difference_of
from bsl.models.evaluation.significance.paired import Difference
from bsl.models.evaluation.sweep import MEAN, SetDraws, SweepResult, mean_of, outcome_draws


def answers(shift: float, seeds: int = 1, n: int = 400) -> np.ndarray:
    """Return outcomes of questions whose difficulty all methods share."""
    hard = np.random.default_rng(99).random(n)
    noise = np.random.default_rng(round(1e6 * (1 + shift))).normal(0, 0.05, (seeds, n))
    return np.clip(hard + shift + noise, 0, 2)


def drawn(*shifts: float, seeds: int = 1, documents: np.ndarray | None = None) -> tuple[BootstrapDraws, ...]:
    outcomes = [answers(shift, seeds) for shift in shifts]
    return outcome_draws(outcomes, np.arange(400) if documents is None else documents, resamples=2000)


def test_methods_share_draws_of_whole_documents():
    values = np.arange(6, dtype=float)[None]
    (first,), (second,) = [outcome_draws([values + shift], np.array([3, 3, 3, 9, 9, 9])) for shift in (0, 10)]
    assert first.figures.tolist() == [2.5]
    drawn_at_all = np.isfinite(first.draws)
    assert {*np.round(first.draws[drawn_at_all], 9)} <= weighed(1.0, 4.0)
    np.testing.assert_allclose(second.draws[drawn_at_all] - first.draws[drawn_at_all], 10)


def test_documents_are_weighted_by_their_number_of_questions():
    values, document = np.array([[0.0, 0, 0, 1]]), np.array([0, 0, 0, 1])
    (found,) = outcome_draws([values], document, resamples=4000)
    assert {*np.round(found.draws[np.isfinite(found.draws)], 9)} <= weighed(0.0, 1.0, size=3)


def flat(*figures: float) -> tuple[BootstrapDraws, ...]:
    return tuple(BootstrapDraws(np.array([figure]), np.full((2000, 1), figure)) for figure in figures)


def chosen(labels, systems, **checks: tuple[BootstrapDraws, ...]):
    """Choose on one set; `checks` are systems' draws on the sets where none may lose more than half a point."""
    own = [SetDraws(name, "spearman", "", drawn) for name, drawn in checks.items()]
    sets = (SetDraws("text", "MRR", "text", systems), *own)
    return SweepResult(tuple(labels), sets).choice("text", list(checks), 0.005)


def weighed(one: float, other: float, size: int = 1) -> set[float]:
    """Return the means of two documents drawn 0 to 11 times each; the first has `size` times as many questions."""
    times = [(size * a, b) for a in range(12) for b in range(12) if a + b]
    return {round((a * one + b * other) / (a + b), 9) for a, b in times}


def test_probes_of_one_text_share_document_draws():
    """The effect of a document, shared by all probes, counts once, also where a probe asks nothing of the document."""
    documents = np.repeat(np.arange(60), 3)
    kept = {"neighbour": documents, "title": documents[documents > 0], "crop": documents[documents < 59]}
    called = 0
    for number in range(40):
        draw = np.random.default_rng(number)
        luck = draw.normal(0, 0.1, 60)
        gains = {name: luck[unit] + draw.normal(0, 0.02, len(unit)) for name, unit in kept.items()}
        ranks = {name: [np.full((1, len(gain)), 0.5), 0.5 + gain[None]] for name, gain in gains.items()}
        sets = [SetDraws(name, "MRR", "text", outcome_draws(ranks[name], kept[name], resamples=400)) for name in kept]
        rows = SweepResult(("start", "other"), (mean_of(sets), *sets)).rows()
        called += next(row["verdict"] for row in rows if row["label"] == "other") != "no"
    assert called <= 6  # 2 of 40 are expected; with separate draws for each probe, a quarter was called


def test_draw_spread_matches_the_normal_approximation():
    (found,) = drawn(0.0)
    assert found.draws.std() == pytest.approx(answers(0.0).std() / 20, rel=0.06)


def test_mean_weights_groups_equally_and_ignores_ungrouped_sets():
    means = flat(0.2, 0.4, 0.9, 0.0)
    proofs = [
        SetDraws("crop", "MRR", "text", (means[0],)),
        SetDraws("title", "MRR", "text", (means[1],)),
        SetDraws("labels", "accuracy", "labels", (means[2],)),
        SetDraws("stsb", "spearman", "", (means[3],)),
    ]
    (found,) = mean_of(proofs).systems
    assert found.figures[0] == pytest.approx((0.3 + 0.9) / 2)
    np.testing.assert_allclose(found.draws, 0.6)


def test_forgetting_depends_on_the_loss_not_on_its_significance():
    names = ["start", "sure", "unsure", "little"]
    found = chosen(names, flat(0, 0, 0, -0.9), stsb=flat(0.5, 0.48, 0.494, 0.496), sts12=flat(0.5, 0.47, 0.5, 0.5))
    assert found.forgets == {"sure": pytest.approx(-0.03), "unsure": pytest.approx(-0.006)}


def test_significant_gain_is_chosen_over_higher_uncertain_score():
    unsure = BootstrapDraws(np.array([0.9]), np.random.default_rng(0).normal(0.9, 1, (2000, 1)))
    systems = (*flat(0.4, 0.45, 0.5), unsure)
    names = ["start", "sure", "forgets", "unsure"]
    check = flat(0.5, 0.5, 0.4, 0.5)
    assert chosen(names, systems, stsb=check).best == "sure"
    rest = chosen(["start", "forgets", "unsure"], (systems[0], *systems[2:]), stsb=(check[0], *check[2:]))
    assert rest.best == "unsure", "nothing is above for sure, so only what forgets is left out"
    assert chosen(names[:3:2], systems[:3:2], stsb=check[:3:2]).best == "start"


def test_row_verdicts_are_above_below_or_no_after_correction():
    names = ["start", "same", "better", "worse"]
    crop = SetDraws("crop", "MRR", "text", drawn(0, 0.0001, 0.05, -0.05))
    rows = list(SweepResult(tuple(names), (mean_of([crop]), crop)).rows())
    own = {row["label"]: row for row in rows if row["dataset"] == MEAN}
    assert [own[name]["verdict"] for name in names] == [None, "no", "above", "below"]
    assert own["better"]["mean"] - own["start"]["mean"] == pytest.approx(own["better"]["difference"])
    assert [row["dataset"] for row in rows] == [MEAN] * 4 + ["crop"] * 4


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [(0.1, 0.2, 0.01, "above"), (0.1, 0.2, 0.06, "no"), (-0.2, -0.1, 0.01, "below"), (-0.1, 0.2, 0.01, "no")],
)
def test_verdict_requires_both_interval_and_p_value(low, high, p, word):
    assert Difference(0.0, low, high, p).verdict == word


def test_best_is_the_highest_system_that_does_not_forget():
    names = ["start", "near", "best", "barred"]
    found = chosen(names, drawn(0, 0.095, 0.1, 0.3), stsb=flat(0.5, 0.5, 0.5, 0.4))
    assert found.best == "best"


def test_variance_over_seeds_widens_the_interval_of_a_difference():
    quiet = outcome_draws([answers(0), answers(0.01)], np.arange(400), resamples=2000)
    spread = np.array([[-0.2], [0.0], [0.2]])
    loud = outcome_draws([answers(0, 3) + spread, answers(0.01, 3) + spread], np.arange(400), resamples=2000)
    assert difference_of(*quiet).ci_low > 0
    assert difference_of(*loud).ci_low < 0
