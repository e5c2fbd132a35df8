"""Health checks during training: stop conditions, their kind and their advice."""

import pytest

from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.training.config import CollapseConfig, TrainingConfig
from bsl.models.training.dev_evaluation import StepEvaluation, divergence_remedy, finding_of
from tests.every import every

COLLAPSED, UNLEARNT = "representations collapsed", "the encoder got worse"
NAN = float("nan")
START = StepEvaluation(step=0, alignment=0.3, uniformity=-1.0, std=0.4, effective_rank=60.0, dev_spearman=0.58)
CONFIG = TrainingConfig(
    precision="fp32", collapse=CollapseConfig(max_dev_drop=0.15, min_effective_rank=2.0, min_std=0.01, patience=2)
)


def later(step, **changes):
    return StepEvaluation(**{**vars(START), "step": step, **changes})


def stopped(history, final=False, config=CONFIG):
    return finding_of(history, config, final=final).partition(" by step ")[0]


@every(
    [
        ({"dev_spearman": 0.28}, UNLEARNT),
        ({"dev_spearman": 0.28, "effective_rank": 20.0}, COLLAPSED),
        ({"dev_spearman": 0.28, "std": 0.1}, COLLAPSED),
        ({"dev_spearman": NAN}, COLLAPSED),
        ({"effective_rank": 1.4}, COLLAPSED),
        ({"std": 0.004}, COLLAPSED),
    ]
)
def test_two_bad_evaluations_or_a_bad_last_stop_training(sick, kind):
    assert stopped([START, later(1), later(2, **sick), later(3, **sick)]) == kind
    assert stopped([START, later(1), later(2, **sick)], final=True) == kind
    assert not stopped([START, later(1), later(2, **sick)])
    assert not stopped([START, later(1, **sick), later(2)])
    assert not stopped([START, later(1, **sick), later(2), later(3, **sick)])


@every(
    [
        ({}, {"dev_spearman": 0.45}, ""),
        ({}, {"effective_rank": 2.5}, ""),
        ({}, {"std": 0.02}, ""),
        ({}, {"uniformity": -0.1}, ""),
        # A start below the thresholds is no collapse, nor is an undefined score at the start.
        ({"std": 0.005, "effective_rank": 1.5}, {"std": 0.005, "effective_rank": 1.5}, ""),
        ({"dev_spearman": NAN}, {"dev_spearman": 0.6}, ""),
        ({"dev_spearman": NAN}, {"dev_spearman": NAN}, ""),
        ({"dev_spearman": None}, {"dev_spearman": None}, ""),
        ({"dev_spearman": None}, {"dev_spearman": None, "effective_rank": 1.2}, COLLAPSED),
    ]
)
def test_finding_at_the_end_depends_on_start_and_end(first, last, kind):
    assert stopped([later(0, **first), later(5, **last)], final=True) == kind


def test_disabled_collapse_check_never_stops_training():
    assert not stopped([START, later(1, std=0.0)], final=True, config=CONFIG.model_copy(update={"collapse": None}))


def test_dev_drop_with_high_effective_rank_is_a_decline():
    """all-MiniLM-L6-v2 with the former recipe `custom`: rank 277 → 199, dev 86.7 → 71.6, target standardised."""
    start = later(0, effective_rank=277.0, dev_spearman=0.867)
    now = later(13, effective_rank=199.0, dev_spearman=0.716)
    config = CONFIG.model_copy(update={"objective": BSLConfig(target_norm="standardize"), "lr": 5e-4})
    finding = finding_of([start, now], config, final=True)
    assert finding.startswith("the encoder got worse by step 13: ")
    assert "target_norm" not in finding
    assert "lower training.lr (now 0.0005) to 5e-05" in finding
    assert "contrastive_weight=0.1" in finding


@pytest.mark.parametrize(
    ("objective", "advice"),
    [
        (BSLConfig(), "Set training.objective.target_norm to 'standardize'"),
        (BSLConfig(target_norm="center"), "Set training.objective.contrastive_weight to 0.1"),
        (BSLConfig(momentum=0, target_norm="standardize"), "Raise training.objective.momentum (now 0) to 0.999"),
        (BSLConfig(target_norm="center", contrastive_weight=0.1), "Lower training.lr"),
        (ContrastiveConfig(), "Lower training.lr"),
    ],
    ids=str,
)
def test_collapse_finding_advises_a_setting_not_yet_in_use(objective, advice):
    config = CONFIG.model_copy(update={"objective": objective})
    finding = finding_of([START, later(50, effective_rank=1.5)], config, final=True)
    assert finding.startswith("representations collapsed by step 50: ")
    assert advice in finding
    assert "effective_rank 60 → 1.5" in finding


def test_decline_finding_names_the_best_step_with_a_score():
    history = [later(0, dev_spearman=0.5), later(10), later(20, dev_spearman=NAN), later(30, dev_spearman=0.2)]
    assert "The dev score was best at step 10: set training.max_steps to it" in finding_of(history, CONFIG, final=True)


def test_divergence_remedy_suggests_fp32_only_for_lower_precision():
    assert divergence_remedy(CONFIG).startswith("Lower training.lr")
    assert divergence_remedy(CONFIG.model_copy(update={"precision": "bf16"})).startswith("Set training.precision=fp32,")
