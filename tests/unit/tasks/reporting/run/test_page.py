"""The first chart of a run's page, and the advice on a gentler training."""

import polars as pl

from bsl.flows.recipes import recipe
from bsl.models.evaluation.published import rows_of
from bsl.models.evaluation.sweep import MEAN
from bsl.models.evaluation.verdict import Verdict
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training.config import TrainingConfig
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ComparisonRef, CorpusRef
from bsl.storage.artifacts.schemas import COMPARED, COMPARISON
from bsl.tasks.corpus.evaluation_sets import ScoredSet
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.reporting.run.content import ReportContent, Run, RunArtifacts
from bsl.tasks.reporting.run.page import headline, role_of
from bsl.tasks.reporting.run.report import gentler
from bsl.tasks.stage.cached import StageContext
from tests.every import every

SYSTEMS = ("before BSL (mean)", "after BSL")
SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")


@every(
    [
        (SYSTEMS[0], "before"),
        (SYSTEMS[1], "after"),
        ("after BSL + whitening (corpus)", "after"),
        ("Unigram TF-IDF", "baseline"),
        ("before BSL (mean) + flow (corpus)", "after"),
    ]
)
def test_role_of_a_system_is_its_place_in_the_training(name, role):
    assert role_of(name, SYSTEMS) == role


def test_mean_chart_has_the_figures_of_the_comparison_plain_means_of_others_and_printed_means(site):
    store, ref, settings = site.open_store(), ComparisonRef(key="1" * 64), recipe("tiny").settings
    before, after = settings.systems
    place = {"subset": "all", "split": "test", "metric": "spearman", "protocol": "all", "n": 20}
    mean = {"dataset": MEAN, **place, "ci_low": 0.3, "ci_high": 0.7}
    means = [mean | {"model": before, "value": 0.4}, mean | {"model": after, "value": 0.5}]
    difference = mean | {"model": after, "reference": before, "value": 0.1, "p_value": 0.01, "seed": 0}
    comparison = pl.DataFrame([difference]).select(COMPARISON.names()).cast(COMPARISON)
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(comparison)
        draft.write(pl.DataFrame(means).select(COMPARED.names()).cast(COMPARED), "compared")
        context = StageContext(site, store, draft)
    artifacts = RunArtifacts(
        corpus=CorpusRef(key="2" * 64), views=None, pairs=(), checkpoints=(), folded=(), scores=(), comparisons=(ref,),
        vectors={}, sets=tuple(ScoredSet.model_construct(dataset=name, split="test") for name in SETS),
    )  # fmt: skip
    content = ReportContent(title="A run", missing=Missing(), tables=(), published=(), settings=settings, sources=())
    names = ("TF-IDF", before, after)
    scores = pl.DataFrame([place | {"model": name, "dataset": one, "value": 0.7} for name in names for one in SETS])
    run = Run(context, artifacts, content, scores, comparison, Verdict("BETTER", "by 10", "Use it."))
    # SimCSE's README has the mean alone; SCL's mean is over other sets.
    named = ("SimCSE, supervised, BERT-base", "SCL, λ = 0.3")
    chart = headline(run, [row for system in named for row in rows_of(system)])
    assert chart is not None
    assert chart.label.endswith(f"TF-IDF: 70.0; {before}: 40.0; {after}: 50.0; {named[0]} (published): 81.6")


def test_gentler_training_advice_depends_on_the_settings():
    objective = BSLConfig(contrastive_weight=0.1)
    assert gentler(TrainingConfig(lr=5e-4, max_steps=100, objective=objective)) == "Lower training.lr (now 0.0005)."
    paper = gentler(TrainingConfig())
    assert "bound training.max_steps" in paper
    assert "contrastive_weight=0.1" in paper
