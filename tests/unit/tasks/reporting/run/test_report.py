"""The verdict of a run's report, and the set that decides it."""

import polars as pl

from bsl.flows.cli.terminal.overrides import configured
from bsl.models.evaluation.sweep import MEAN
from bsl.tasks.figures import TrainingFigures
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.reporting.run.content import ReportContent, Run
from bsl.tasks.reporting.run.report import run_verdict
from tests.every import every


@every([("best", "sts13"), ("last", MEAN)])
def test_mean_of_test_sets_decides_unless_one_of_them_selected_the_encoder(select, deciding):
    changes = [f"training.select={select}", "evaluation.dev=sts12/test"]
    settings = configured("tiny", changes).settings
    before, after = settings.systems
    row = {
        "model": after, "reference": before, "metric": "spearman", "split": "test",
        "value": 0.05, "ci_low": 0.01, "ci_high": 0.09, "p_value": 0.01,
    }  # fmt: skip
    comparison = pl.DataFrame([row | {"dataset": name} for name in ("sts12", "sts13", MEAN)])
    trained = [TrainingFigures.model_construct(best_step=5, finding="")]
    verdict = run_verdict(comparison, settings, trained)
    assert f"on {deciding} test" in verdict.reason
    content = ReportContent(title="A run", missing=Missing(), tables=(), published=(), settings=settings, sources=())
    run = Run(None, None, content, scores=comparison, comparison=comparison, verdict=verdict)
    assert run.deciding == (deciding, "test")
