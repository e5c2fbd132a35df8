"""The verdict of a run's report, and the set that decides it."""

import polars as pl

from bsl.flows.cli.terminal.overrides import configured
from bsl.models.evaluation.sweep import MEAN
from bsl.tasks.figures import TrainingFigures
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.reporting.run.content import ReportContent, Run
from bsl.tasks.reporting.run.report import run_verdict
from tests.every import every


def compared(settings, names=("stsb",), p_value=0.01):
    before, after = settings.systems
    row = {
        "model": after, "reference": before, "metric": "spearman", "split": "test",
        "value": 0.05, "ci_low": 0.01, "ci_high": 0.09, "p_value": p_value,
    }  # fmt: skip
    return pl.DataFrame([row | {"dataset": name} for name in names])


TRAINED = [TrainingFigures.model_construct(best_step=5, finding="")]


@every([(2 / 1001, 1000, "p ≤ 0.002."), (4 / 1001, 1000, "p 0.004."), (2 / 1001, None, "p 0.002.")])
def test_verdict_prints_smallest_p_of_draws_as_bound_as_the_table_does(p_value, draws, printed):
    """Regression: the verdict had p 0.002 where the table of differences had ≤ 0.002."""
    settings = configured("tiny", []).settings
    assert printed in run_verdict(compared(settings, p_value=p_value), settings, TRAINED, draws).sentence


@every([("best", "sts13"), ("last", MEAN)])
def test_mean_of_test_sets_decides_unless_one_of_them_selected_the_encoder(select, deciding):
    changes = [f"training.select={select}", "evaluation.dev=sts12/test"]
    settings = configured("tiny", changes).settings
    comparison = compared(settings, ("sts12", "sts13", MEAN))
    verdict = run_verdict(comparison, settings, TRAINED)
    assert f"on {deciding} test" in verdict.reason
    content = ReportContent(title="A run", missing=Missing(), tables=(), published=(), settings=settings, sources=())
    run = Run(None, None, content, scores=comparison, comparison=comparison, verdict=verdict)
    assert run.deciding == (deciding, "test")
