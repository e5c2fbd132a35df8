"""Runs are compared with a published row: each verdict, and each reason for no verdict."""

import polars as pl
import pytest

from bsl.models.corpus.corpus import CorpusStatistics
from bsl.models.evaluation.published import rows_of
from bsl.storage.artifacts.refs import CorpusRef, ReportRef
from bsl.storage.artifacts.schemas import CORPUS
from bsl.tasks.figures import IngestFigures, SourceCounts
from bsl.tasks.reporting.reproduction import RowComparison, reproduce
from tests.corpora import publish, score_row

ROW = "BSL-BERT, NLI_entail"
MEAN_ONLY = "Contrastive, batch 64"
(PRINTED,) = rows_of(ROW)
SETS = {name: value for name, value in PRINTED.values.items() if name != "avg"}
WEIGHTED = {name: value for name, value in rows_of("BERT-flow")[0].values.items() if name != "avg"}
COUNTS = dict.fromkeys(("read", "empty", "too_short", "too_long", "duplicates", "unique", "published"), 0)
NOTHING = CorpusStatistics(**COUNTS, mean_chars=0.0, quantiles={}, histogram=(), per_source={}, samples=())


def scores(dataset, value):
    """Return the rows of a set: a yearly task has subsets, and so the weighted mean over them."""
    line = f"set:{dataset}/test|metric:spearman|protocol:all|data:{dataset.replace('-', '')}|len:64"
    ends = {"ci_low": value / 100 - 0.02, "ci_high": value / 100 + 0.02}
    protocols = ("all", "wmean") if dataset.startswith("sts1") else ("all",)
    return [
        score_row(dataset, value / 100, model="after BSL", signature=line, protocol=protocol, **ends)
        for protocol in protocols
    ]


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
        source = SourceCounts(name="snli", records=records, unreadable=0, bad=[])
        read = IngestFigures(statistics=NOTHING, sources=[source])
        publish(store, corpus, pl.DataFrame(schema=CORPUS), figures=read)
        reports = tuple(ReportRef(key=f"{number:064x}") for number, _ in enumerate(runs, len(store.refs("report"))))
        for ref, figures in zip(reports, runs, strict=True):
            of_sets = [scores(name.replace("_", "-"), value) for name, value in figures.items()]
            rows = pl.DataFrame([row for of_set in of_sets for row in of_set])
            publish(store, ref, rows, "scores", inputs={"corpus": corpus})
        asked = {"row": ROW, "cells": (), "deviations": (), "margin": 1.0, "draws": True, **changed}
        comparison = RowComparison(system="after BSL", records={"snli": 550_152}, **asked)
        ref = reproduce(site, reports=reports, comparison=comparison)
        figures, table = store.manifest(ref).figures, store.scan(ref).collect()
        assert figures["findings"][0].endswith(f": {figures['verdict']}")
        page = (store.fetch(ref) / "reproduction.md").read_text()
        return dict(table.select("dataset", "verdict").rows()), page, table

    return call


def test_mean_deviation_and_interval_over_seeds_are_on_the_page(reproduced):
    """Their arithmetic is that of models/evaluation/reproduction.py."""
    _, page, table = reproduced(shifted(0, 0.5, 0.25))
    average = table.row(by_predicate=pl.col("dataset") == "avg", named=True)
    assert average["value"] == pytest.approx(sum(SETS.values()) / 7 + 0.25)
    assert average["sd"] == pytest.approx(0.25)
    assert average["signature"].startswith("set:sts12/test,sts13/test,")
    with_pairs, over_seeds = (f"[{average[f'{end}_low']:.2f}, {average[f'{end}_high']:.2f}]" for end in ("ci", "seeds"))
    value, published = average["value"], PRINTED.values["avg"]
    shown = f"| {published:.2f} | {value:.2f} | {value - published:+.2f} | 0.25 |"
    assert f"{shown} {with_pairs} | 3 | {over_seeds} | 1.00 | REPRODUCED | – |" in page


def test_page_states_the_seeds_that_a_verdict_needs(reproduced):
    for runs, needs, cell in (
        (shifted(0), "One seed has no standard deviation", "at least 2"),
        (shifted(0, 2.0), "a verdict needs more than 1,000 seeds", "more than 1,000"),
    ):
        _, page, _ = reproduced(runs)
        assert needs in page
        assert f"| INCONCLUSIVE | {cell} |" in page
    _, page, table = reproduced(shifted(0, 1.2))
    needed = max(table["seeds_needed"].to_list())
    assert f"A verdict needs about {needed} seeds" in page
    assert f"| INCONCLUSIVE | about {needed} |" in page


REPRODUCED, INCONCLUSIVE, INCOMPARABLE = (
    {**dict.fromkeys([*SETS, "avg"], word)} for word in ("REPRODUCED", "INCONCLUSIVE", "NOT COMPARABLE")
)
NO_DRAWS = {"draws": False}
PARTIAL = {"deviations": ("another encoder: small; the row's is large",), "records": 1_000}
VERDICTS = {
    "near": (shifted(0, 0.5, 0.25), {}, REPRODUCED, "REPRODUCED", ""),
    "one seed": (shifted(0), {}, INCONCLUSIVE, "INCONCLUSIVE", ""),
    "narrow margin": (shifted(0, 0.5, 0.25), {"margin": 0.3}, INCONCLUSIVE, "INCONCLUSIVE", "| 0.30 | INCONCLUSIVE |"),
    "one set below": (
        [SETS | {"sts13": SETS["sts13"] - 5}], NO_DRAWS, REPRODUCED | {"sts13": "BELOW"}, "BELOW", "",
    ),
    "one set": (
        [{"sts13": SETS["sts13"]}], NO_DRAWS | {"cells": ("sts13",)}, {"sts13": "REPRODUCED"}, "REPRODUCED", "(sts13)",
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
    "weighted means, and sets without subsets": (
        [WEIGHTED], NO_DRAWS | {"row": "BERT-flow"}, dict.fromkeys([*WEIGHTED, "avg"], "REPRODUCED"), "REPRODUCED",
        "| spearman, wmean |",
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
