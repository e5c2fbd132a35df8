"""Runs are compared with a published row: each verdict, and each reason for no verdict."""

import polars as pl
import pytest

from bsl.models.corpus.corpus import CorpusStatistics
from bsl.models.evaluation.published import rows_of
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CorpusRef, ReportRef
from bsl.storage.artifacts.schemas import CORPUS, SCORES
from bsl.tasks.figures import IngestFigures, SourceCounts
from bsl.tasks.reporting.reproduction import RowComparison, reproduce
from bsl.tasks.stage.run_context import RunContext

ROW = "BSL-BERT, NLI_entail"
(PRINTED,) = rows_of(ROW)
SETS = {name: value for name, value in PRINTED.values.items() if name != "avg"}
SNLI = {"snli": 550_152}
COUNTS = dict.fromkeys(("read", "empty", "too_short", "too_long", "duplicates", "unique", "published"), 0)
NOTHING = CorpusStatistics(**COUNTS, mean_chars=0.0, quantiles={}, histogram=(), per_source={}, samples=())


def score(dataset: str, value: float) -> dict[str, object]:
    line = f"set:{dataset}/test|metric:spearman|protocol:all|data:{dataset.replace('-', '')}|len:64"
    return {
        "model": "after BSL", "dataset": dataset, "subset": "all", "split": "test", "metric": "spearman",
        "protocol": "all", "value": value / 100, "n": 9, "ci_low": value / 100 - 0.02, "ci_high": value / 100 + 0.02,
        "seed": 0, "checkpoint": "", "signature": line,
    }  # fmt: skip


def shifted(off: float) -> dict[str, float]:
    """Return the published scores, shifted by `off`."""
    return {name: value + off for name, value in SETS.items()}


@pytest.fixture
def reproduced(tmp_path):
    """Return a function: scores of each run → verdicts by set and the page."""
    site = RunContext(store=str(tmp_path / "store"))
    store, corpus = site.open_store(), CorpusRef(key="c" * 64)

    def call(*runs: dict[str, float], deviations=(), records=550_152, row=ROW, cells=(), margin=1.0, draws=True):
        with store.draft(corpus, Provenance(stage_version=1, config={})) as draft:
            draft.write(pl.DataFrame(schema=CORPUS))
            source = SourceCounts(name="snli", records=records, unreadable=0, bad=[])
            draft.note(IngestFigures(statistics=NOTHING, sources=[source]))
        entry = InputEntry(kind="corpus", key=corpus.key, digest=store.manifest(corpus).digest)
        reports = tuple(ReportRef(key=f"{number:064x}") for number, _ in enumerate(runs))
        for ref, figures in zip(reports, runs, strict=True):
            made = Provenance(stage_version=1, config={}, inputs={"corpus": entry})
            with store.draft(ref, made) as draft:
                rows = pl.DataFrame([score(name, value) for name, value in figures.items()])
                draft.write(rows.select(SCORES.names()).cast(SCORES), "scores")
        asked = RowComparison(
            row=row, cells=cells, system="after BSL", records=SNLI, deviations=deviations, margin=margin, draws=draws
        )
        ref = reproduce(site, reports=reports, comparison=asked)
        table = store.scan(ref).collect()
        figures = store.manifest(ref).figures
        assert figures["findings"][0].endswith(f": {figures['verdict']}")
        return (
            dict(table.select("dataset", "verdict").rows()),
            (store.fetch(ref) / "reproduction.md").read_text(),
            table,
        )

    return call


def test_scores_near_the_published_row_are_reproduced(reproduced):
    verdicts, page, table = reproduced(*(shifted(off) for off in (0, 0.5, 0.25)))
    assert page.startswith(f"# {ROW}\n\n**REPRODUCED**")
    assert set(verdicts) == {*SETS, "avg"}
    assert set(verdicts.values()) == {"REPRODUCED"}
    average = table.row(by_predicate=pl.col("dataset") == "avg", named=True)
    assert average["value"] == pytest.approx(sum(SETS.values()) / 7 + 0.25)
    assert average["sd"] == pytest.approx(0.25)
    assert average["signature"].startswith("set:sts12/test,sts13/test,")
    assert (average["margin"], average["seeds_needed"]) == (1.0, None)
    half = 2.919986 * 0.25 / 3**0.5
    assert (average["seeds_low"], average["seeds_high"]) == pytest.approx(
        (average["value"] - half, average["value"] + half), abs=1e-5
    )
    assert "| 65.88 | 66.13 | +0.25 | 0.25 |" in page
    assert "| 1.00 | REPRODUCED | – |" in page


def test_single_seed_is_inconclusive_and_page_asks_for_two(reproduced):
    verdicts, page, table = reproduced(SETS)
    assert set(verdicts.values()) == {"INCONCLUSIVE"}
    assert table["seeds_low"].null_count() == table.height
    assert page.startswith(f"# {ROW}\n\n**INCONCLUSIVE** One seed has no standard deviation")
    assert "| INCONCLUSIVE | at least 2 |" in page


def test_inconclusive_page_states_the_largest_number_of_seeds_needed(reproduced):
    _, page, table = reproduced(*(shifted(off) for off in (0, 1.2)))
    needed = table["seeds_needed"].to_list()
    assert page.startswith(f"# {ROW}\n\n**INCONCLUSIVE** A verdict needs about {max(needed)} seeds")
    assert f"| INCONCLUSIVE | about {max(needed)} |" in page


def test_score_at_the_margin_needs_over_1000_seeds(reproduced):
    _, page, _ = reproduced(*(shifted(off) for off in (0, 2.0)))
    assert "a verdict needs more than 1,000 seeds" in page
    assert "| INCONCLUSIVE | more than 1,000 |" in page


def test_custom_margin_sets_the_table_column_and_verdict(reproduced):
    runs = [shifted(off) for off in (0, 0.5, 0.25)]
    verdicts, page, table = reproduced(*runs, margin=0.3)
    assert set(verdicts.values()) == {"INCONCLUSIVE"}
    assert set(table["margin"]) == {0.3}
    assert "| 0.30 | INCONCLUSIVE |" in page
    assert set(reproduced(*runs, margin=0.8)[0].values()) == {"REPRODUCED"}


def test_single_set_below_makes_the_row_verdict_below(reproduced):
    verdicts, page, _ = reproduced(SETS | {"sts13": SETS["sts13"] - 5}, draws=False)
    assert (verdicts["sts13"], verdicts["sts12"], verdicts["avg"]) == ("BELOW", "REPRODUCED", "REPRODUCED")
    assert page.startswith(f"# {ROW}\n\n**BELOW**")


def test_single_set_run_is_compared_with_its_cell_only(reproduced):
    verdicts, page, _ = reproduced({"sts13": SETS["sts13"]}, cells=("sts13",), draws=False)
    assert verdicts == {"sts13": "REPRODUCED"}
    assert page.startswith(f"# {ROW} (sts13)\n\n**REPRODUCED**")
    verdicts, page, _ = reproduced({"sts13": SETS["sts13"]}, cells=("sts12",))
    assert verdicts["sts12"] == "NOT COMPARABLE"
    assert page.startswith(f"# {ROW} (sts12)\n\n**NOT COMPARABLE** missing sets: sts12.")


def test_missing_set_makes_average_and_row_not_comparable(reproduced):
    verdicts, page, _ = reproduced({name: value for name, value in SETS.items() if name != "sickr"}, draws=False)
    assert (verdicts["sickr"], verdicts["avg"], verdicts["sts12"]) == ("NOT COMPARABLE",) * 2 + ("REPRODUCED",)
    assert page.startswith(f"# {ROW}\n\n**NOT COMPARABLE**")
    assert "missing sets: sickr." in page


def test_partial_corpus_or_deviation_makes_all_sets_not_comparable(reproduced):
    verdicts, page, _ = reproduced(SETS, deviations=("another encoder: small; the row's is large",), records=1_000)
    assert set(verdicts.values()) == {"NOT COMPARABLE"}
    assert "another encoder: small; the row's is large." in page
    assert "a part of the corpus only: snli has 1,000 of 550,152 records." in page


def test_tokenised_set_score_is_shown_but_not_comparable(reproduced):
    figures = {name: value for name, value in SETS.items() if name != "sts14"} | {"sts14-tok": 70.0}
    verdicts, page, table = reproduced(figures)
    assert verdicts["sts14"] == "NOT COMPARABLE"
    assert table.filter(dataset="sts14")["value"].item() == pytest.approx(70)
    assert "scored on SentEval's tokenised text: sts14." in page


def test_mean_only_row_is_compared_with_the_average(reproduced):
    verdicts, _, table = reproduced(dict.fromkeys(SETS, 71.0), row="Contrastive, batch 64", draws=False)
    assert verdicts == {"avg": "REPRODUCED"}
    assert table.select("published", "value").row(0) == (71.04, pytest.approx(71.0))


def test_mean_only_row_requires_every_set(reproduced):
    some = {name: 71.0 for name in SETS if name != "sickr"}
    verdicts, _, _ = reproduced(some, row="Contrastive, batch 64")
    assert verdicts == {"avg": "NOT COMPARABLE"}


def test_supervised_row_is_compared_with_the_mean_over_runs(reproduced):
    verdicts, _, table = reproduced({"stsb": 84.4}, {"stsb": 84.6}, row="SBERT-STSb")
    assert verdicts == {"stsb": "REPRODUCED"}
    assert table.select("protocol", "published", "value").row(0) == ("supervised-mean", 84.67, pytest.approx(84.5))
