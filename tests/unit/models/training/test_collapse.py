"""Which evaluations count as a collapse."""

import pytest

from models.errors import CollapseError
from models.training.collapse import check_collapse
from models.training.config import CollapseConfig
from models.training.evaluator import Evaluation

START = Evaluation(0, alignment=0.3, uniformity=-1.0, std=0.4, effective_rank=60.0, dev_spearman=0.58)
CONFIG = CollapseConfig(max_dev_drop=0.15, min_effective_rank=2.0, min_std=0.01, patience=2)


def later(step, **changes):
    return Evaluation(**{**vars(START), "step": step, **changes})


def collapsed(history, final=False, config=CONFIG):
    try:
        check_collapse(history, config, final=final)
    except CollapseError:
        return True
    return False


@pytest.mark.parametrize(
    "sick",
    [{"dev_spearman": 0.28}, {"dev_spearman": float("nan")}, {"effective_rank": 1.4}, {"std": 0.004}],
    ids=lambda change: next(iter(change)),
)
def test_two_sick_evaluations_in_a_row_or_one_at_the_end(sick):
    assert collapsed([START, later(1), later(2, **sick), later(3, **sick)])
    assert collapsed([START, later(1), later(2, **sick)], final=True)
    assert not collapsed([START, later(1), later(2, **sick)])
    assert not collapsed([START, later(1, **sick), later(2)])
    assert not collapsed([START, later(1, **sick), later(2), later(3, **sick)])


@pytest.mark.parametrize("well", [{"dev_spearman": 0.45}, {"effective_rank": 2.5}, {"std": 0.02}, {"uniformity": -0.1}])
def test_a_weaker_figure_is_no_collapse(well):
    assert not collapsed([START, later(1, **well), later(2, **well)], final=True)


def test_an_encoder_that_starts_below_a_bound_has_not_collapsed():
    poor = Evaluation(0, alignment=0.1, uniformity=-0.01, std=0.005, effective_rank=1.5, dev_spearman=0.1)
    assert not collapsed([poor, poor, poor], final=True)


def test_without_a_dev_set_geometry_decides():
    start = later(0, dev_spearman=None)
    assert not collapsed([start, start], final=True)
    assert collapsed([start, later(5, dev_spearman=None, effective_rank=1.2)], final=True)


def test_the_message_has_evidence_and_remedy():
    with pytest.raises(
        CollapseError, match=r"dev Spearman fell by 0\.300.*dev_spearman 0\.58 → 0\.28.*target_norm"
    ) as caught:
        check_collapse([START, later(50, dev_spearman=0.28)], CONFIG, final=True)
    assert caught.value.evidence["dev_spearman"] == (0.58, 0.28)
    assert caught.value.step == 50
