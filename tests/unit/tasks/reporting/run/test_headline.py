"""The headline of a run's report: colours of systems, and the scores with interval, published value and difference."""

from datetime import UTC, datetime

import polars as pl

from bsl.flows.recipes import recipe
from bsl.models.evaluation.published import rows_of
from bsl.models.evaluation.sweep import MEAN
from bsl.models.evaluation.verdict import Verdict
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training.config import TrainingConfig
from bsl.storage.artifacts.manifest import InputEntry, Manifest, Provenance, TableEntry
from bsl.storage.artifacts.refs import ComparisonRef, CorpusRef
from bsl.storage.artifacts.schemas import COMPARED, COMPARISON
from bsl.storage.filesystem.digests import FileEntry
from bsl.tasks.corpus.evaluation_sets import ScoredSet
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.rendering.blocks import split_interval
from bsl.tasks.rendering.paper_tables import tables_of
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.reporting.run.content import ReportContent, Run, RunArtifacts
from bsl.tasks.reporting.run.page import headline, role_of
from bsl.tasks.reporting.run.report import gentler
from bsl.tasks.reporting.run.tables import Artifact, lineage_of, stage_table
from bsl.tasks.stage.cached import StageContext
from bsl.tasks.stage.run_context import RunContext

SYSTEMS = ("before BSL (mean)", "after BSL")
RESULT = "after BSL"


def scores_of(sets: tuple[str, ...]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "model": RESULT, "dataset": name, "subset": "all", "split": "test", "metric": "spearman",
            "protocol": "all", "value": 0.7, "n": 10, "ci_low": 0.65, "ci_high": 0.75,
            "signature": f"set:{name}/test|metric:spearman",
        }
        for name in sets
    )  # fmt: skip


def texts(row):
    return [split_interval(cell)[0] for cell in row.cells]


def test_transformed_systems_have_role_after_and_tfidf_baseline():
    names = (*SYSTEMS, "after BSL + whitening (corpus)", "Unigram TF-IDF", "before BSL (mean) + flow (corpus)")
    assert [role_of(name, SYSTEMS) for name in names] == ["before", "after", "after", "baseline", "after"]


def test_mean_chart_has_the_figures_of_the_comparison_and_plain_means_of_others(tmp_path):
    site = RunContext(store=str(tmp_path / "store"))
    store, ref, settings = site.open_store(), ComparisonRef(key="1" * 64), recipe("tiny").settings
    before, after = settings.systems
    place = {"dataset": MEAN, "subset": "all", "split": "test", "metric": "spearman", "protocol": "all", "n": 20}
    means = [
        {"model": name, **place, "value": mean, "ci_low": 0.3, "ci_high": 0.7}
        for name, mean in ((before, 0.4), (after, 0.5))
    ]
    difference = {"model": after, "reference": before, **place, "value": 0.1, "ci_low": 0.05, "ci_high": 0.2}
    comparison = pl.DataFrame([difference | {"p_value": 0.01, "seed": 0}]).select(COMPARISON.names()).cast(COMPARISON)
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(comparison)
        draft.write(pl.DataFrame(means).select(COMPARED.names()).cast(COMPARED), "compared")
        context = StageContext(site, store, draft)
    sets = tuple(ScoredSet.model_construct(dataset=name, split="test") for name in ("sts12", "sts13"))
    artifacts = RunArtifacts(
        corpus=CorpusRef(key="2" * 64), views=None, pairs=(), checkpoints=(), folded=(), scores=(),
        comparisons=(ref,), vectors={}, sets=sets,
    )  # fmt: skip
    content = ReportContent(title="A run", missing=Missing(), tables=(), published=(), settings=settings, sources=())
    systems = [scores_of(("sts12", "sts13")).with_columns(model=pl.lit(name)) for name in ("TF-IDF", before, after)]
    run = Run(context, artifacts, content, pl.concat(systems), comparison, Verdict("BETTER", "by 10", "Use it."))
    chart = headline(run, [])
    assert chart is not None
    assert chart.label.endswith(f"TF-IDF: 70.0; {before}: 40.0; {after}: 50.0")


def test_headline_table_has_only_scored_sets_and_published_difference():
    (table,) = tables_of(scores_of(("stsb",)), tables(), rows_of("BSL-BERT"), RESULT)
    assert list(table.heads) == ["system", "figure", "STS-B"]
    assert [texts(row) for row in table.rows] == [
        [RESULT, "spearman, all", "70.00"],
        ["BSL-BERT: BSL, Table 1", "published", "73.74"],
        ["this run minus BSL-BERT", "difference", "-3.74"],
    ]
    assert table.rows[0].cells[2] == "70.00 [65.0, 75.0]"
    assert [row.role for row in table.rows] == ["", "published", "difference"]


def test_average_column_appears_when_all_sets_are_scored():
    sets = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
    (table,) = tables_of(scores_of(sets), tables(), rows_of("BSL-BERT"), RESULT)
    assert table.heads[-1] == "Avg."
    assert [texts(row)[-1] for row in table.rows] == ["70.00", "72.03", "-2.03"]


def manifest(stage, kind, letter, rows, size, seconds, inputs=()):
    return Manifest(
        kind=kind,
        key=letter * 64,
        provenance=Provenance(
            stage=stage,
            stage_version=1,
            config={},
            inputs={ref.kind: InputEntry(kind=ref.kind, key=ref.key, digest="") for ref in inputs},
        ),
        tables={kind: TableEntry(rows=rows, columns={})},
        files={f"{kind}-00000.parquet": FileEntry(size=size, sha256="0" * 64)},
        versions={},
        host="here",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_s=seconds,
    )


def test_stage_table_has_time_shares_and_lineage_groups_artifacts():
    corpus = Artifact(manifest("ingest", "corpus", "a", 10, 1000, 1.0), "", made=False)
    made = manifest("make_views", "views", "b", 30, 2000, 3.0, inputs=[corpus.manifest.ref])
    views = Artifact(made, "", made=True)
    rows = [texts(row) for row in stage_table([corpus, views]).rows]
    assert rows[1] == ["make views", "–", "views/bbbbbbbbbbbb", "30", "2.0 kB", "3.0", "75.0 %", "made"]
    first, second = lineage_of([views, corpus]).groups
    assert (first[0].title, first[0].made, second[0].title, second[0].made) == ("corpus", False, "views", True)
    assert second[0].lines[-1] == "from corpus aaaaaa"


def test_gentler_training_advice_depends_on_the_settings():
    objective = BSLConfig(contrastive_weight=0.1)
    assert gentler(TrainingConfig(lr=5e-4, max_steps=100, objective=objective)) == "Lower training.lr (now 0.0005)."
    paper = gentler(TrainingConfig())
    assert "bound training.max_steps" in paper
    assert "contrastive_weight=0.1" in paper
