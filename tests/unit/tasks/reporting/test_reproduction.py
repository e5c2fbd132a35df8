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

ROW = "BSL-BERT, NLI_entail"
MEAN_ONLY = "Contrastive, batch 64"
(PRINTED,) = rows_of(ROW)
SETS = {name: value for name, value in PRINTED.values.items() if name != "avg"}
COUNTS = dict.fromkeys(("read", "empty", "too_short", "too_long", "duplicates", "unique", "published"), 0)
NOTHING = CorpusStatistics(**COUNTS, mean_chars=0.0, quantiles={}, histogram=(), per_source={}, samples=())


def score(dataset, value):
    line = f"set:{dataset}/test|metric:spearman|protocol:all|data:{dataset.replace('-', '')}|len:64"
    return {
        "model": "after BSL", "dataset": dataset, "subset": "all", "split": "test", "metric": "spearman",
        "protocol": "all", "value": value / 100, "n": 9, "ci_low": value / 100 - 0.02, "ci_high": value / 100 + 0.02,
        "seed": 0, "checkpoint": "", "signature": line,
    }  # fmt: skip


def shifted(*offs):
    """Return the published scores, shifted by each of `offs`."""
    return [{name: value + off for name, value in SETS.items()} for off in offs]


def without(name, **more):
    return {other: value for other, value in SETS.items() if other != name} | more


@pytest.fixture
def reproduced(site):
    """Return a function: scores of each run → verdicts by set, the page and the table."""
    store, corpus = site.open_store(), CorpusRef(key="c" * 64)

    def call(runs, records=550_152, **changed):
        with store.draft(corpus, Provenance(stage_version=1, config={})) as draft:
            draft.write(pl.DataFrame(schema=CORPUS))
            source = SourceCounts(name="snli", records=records, unreadable=0, bad=[])
            draft.note(IngestFigures(statistics=NOTHING, sources=[source]))
        entry = InputEntry(kind="corpus", key=corpus.key, digest=store.manifest(corpus).digest)
        reports = tuple(ReportRef(key=f"{number:064x}") for number, _ in enumerate(runs, len(store.refs("report"))))
        for ref, figures in zip(reports, runs, strict=True):
            with store.draft(ref, Provenance(stage_version=1, config={}, inputs={"corpus": entry})) as draft:
                rows = pl.DataFrame([score(name.replace("_", "-"), value) for name, value in figures.items()])
                draft.write(rows.select(SCORES.names()).cast(SCORES), "scores")
        asked = {"row": ROW, "cells": (), "deviations": (), "margin": 1.0, "draws": True, **changed}
        comparison = RowComparison(system="after BSL", records={"snli": 550_152}, **asked)
        ref = reproduce(site, reports=reports, comparison=comparison)
        figures, table = store.manifest(ref).figures, store.scan(ref).collect()
        assert figures["findings"][0].endswith(f": {figures['verdict']}")
        page = (store.fetch(ref) / "reproduction.md").read_text()
        return dict(table.select("dataset", "verdict").rows()), page, table

    return call


def test_mean_deviation_and_interval_over_seeds_are_on_the_page(reproduced):
    _, page, table = reproduced(shifted(0, 0.5, 0.25))
    average = table.row(by_predicate=pl.col("dataset") == "avg", named=True)
    assert average["value"] == pytest.approx(sum(SETS.values()) / 7 + 0.25)
    assert average["sd"] == pytest.approx(0.25)
    assert average["signature"].startswith("set:sts12/test,sts13/test,")
    assert (average["margin"], average["seeds_needed"]) == (1.0, None)
    half = 2.919986 * 0.25 / 3**0.5  # Student's t, two degrees of freedom, 90 %
    ends = (average["value"] - half, average["value"] + half)
    assert (average["seeds_low"], average["seeds_high"]) == pytest.approx(ends, abs=1e-5)
    one = table.row(by_predicate=pl.col("dataset") == "sts12", named=True)
    spread = ((4.302653 * 0.25 / 3**0.5) ** 2 + 2**2) ** 0.5  # Student's t, 95 %, and the draws of the pairs
    assert (one["ci_low"], one["ci_high"]) == pytest.approx((one["value"] - spread, one["value"] + spread), abs=1e-5)
    with_pairs, over_seeds = (f"[{one[f'{end}_low']:.2f}, {one[f'{end}_high']:.2f}]" for end in ("ci", "seeds"))
    assert f"| 65.88 | 66.13 | +0.25 | 0.25 | {with_pairs} | 3 | {over_seeds} | 1.00 | REPRODUCED | – |" in page
    assert average["signature"].replace("|", r"\|") in page


def test_page_states_the_seeds_that_a_verdict_needs(reproduced):
    _, page, table = reproduced(shifted(0))
    assert table["seeds_low"].null_count() == table.height
    assert "One seed has no standard deviation" in page
    assert "| INCONCLUSIVE | at least 2 |" in page
    _, page, table = reproduced(shifted(0, 1.2))
    needed = max(table["seeds_needed"].to_list())
    assert f"A verdict needs about {needed} seeds" in page
    assert f"| INCONCLUSIVE | about {needed} |" in page
    _, page, _ = reproduced(shifted(0, 2.0))
    assert "a verdict needs more than 1,000 seeds" in page
    assert "| INCONCLUSIVE | more than 1,000 |" in page


REPRODUCED, INCONCLUSIVE, INCOMPARABLE = (
    {**dict.fromkeys([*SETS, "avg"], word)} for word in ("REPRODUCED", "INCONCLUSIVE", "NOT COMPARABLE")
)
NO_DRAWS = {"draws": False}
PARTIAL = {"deviations": ("another encoder: small; the row's is large",), "records": 1_000}
VERDICTS = {
    "near": (shifted(0, 0.5, 0.25), {}, REPRODUCED, "REPRODUCED", ""),
    "one seed": (shifted(0), {}, INCONCLUSIVE, "INCONCLUSIVE", ""),
    "narrow margin": (shifted(0, 0.5, 0.25), {"margin": 0.3}, INCONCLUSIVE, "INCONCLUSIVE", "| 0.30 | INCONCLUSIVE |"),
    "wider margin": (shifted(0, 0.5, 0.25), {"margin": 0.8}, REPRODUCED, "REPRODUCED", "| 0.80 | REPRODUCED |"),
    "one set below": (
        [SETS | {"sts13": SETS["sts13"] - 5}], NO_DRAWS, REPRODUCED | {"sts13": "BELOW"}, "BELOW", "",
    ),
    "one set": (
        [{"sts13": SETS["sts13"]}], NO_DRAWS | {"cells": ("sts13",)}, {"sts13": "REPRODUCED"}, "REPRODUCED", "(sts13)",
    ),
    "other set": (
        [{"sts13": 70.0}], {"cells": ("sts12",)}, {"sts12": "NOT COMPARABLE"}, "NOT COMPARABLE", "missing sets: sts12.",
    ),
    "missing set": (
        [without("sickr")], NO_DRAWS, REPRODUCED | {"sickr": "NOT COMPARABLE", "avg": "NOT COMPARABLE"},
        "NOT COMPARABLE", "missing sets: sickr.",
    ),
    "deviation": (shifted(0), PARTIAL, INCOMPARABLE, "NOT COMPARABLE", "small; the row's is large."),
    "part of the corpus": (
        shifted(0), PARTIAL, INCOMPARABLE, "NOT COMPARABLE",
        "a part of the corpus only: snli has 1,000 of 550,152 records.",
    ),
    "tokenised set": (
        [without("sts14", sts14_tok=70.0)], {}, INCONCLUSIVE | {"sts14": "NOT COMPARABLE", "avg": "NOT COMPARABLE"},
        "NOT COMPARABLE", "scored on SentEval's tokenised text: sts14.",
    ),
    "row of a mean": (
        [dict.fromkeys(SETS, 71.0)], NO_DRAWS | {"row": MEAN_ONLY}, {"avg": "REPRODUCED"}, "REPRODUCED",
        "| 71.04 | 71.00 |",
    ),
    "row of a mean, missing set": (
        [dict.fromkeys(without("sickr"), 71.0)], {"row": MEAN_ONLY}, {"avg": "NOT COMPARABLE"}, "NOT COMPARABLE", "",
    ),
    "mean over fine-tuned runs": (
        [{"stsb": 84.4}, {"stsb": 84.6}], {"row": "SBERT-STSb"}, {"stsb": "REPRODUCED"}, "REPRODUCED",
        "| spearman, supervised-mean | 84.67 | 84.50 |",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("runs", "settings", "verdicts", "word", "text"), VERDICTS.values(), ids=VERDICTS)
def test_each_cell_and_the_row_have_a_verdict(reproduced, runs, settings, verdicts, word, text):
    found, page, table = reproduced(runs, **settings)
    assert found == verdicts
    assert page.partition("\n\n")[2].startswith(f"**{word}**")
    assert text in page
    if "tok" in str(runs):
        assert table.filter(dataset="sts14")["value"].item() == pytest.approx(70)
