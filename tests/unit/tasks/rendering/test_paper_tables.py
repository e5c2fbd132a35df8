"""Scores are arranged in the papers' tables."""

import polars as pl

from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.rendering.paper_tables import as_latex, paper_tables
from bsl.tasks.reporting.evaluation import evaluation_page

YEARS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")


def row(dataset, value, *, model="mine_1", metric="spearman", protocol="all", subset="all", split="test"):
    return {
        "model": model, "dataset": dataset, "subset": subset, "split": split, "metric": metric, "protocol": protocol,
        "value": value, "n": 10, "ci_low": value - 0.1, "ci_high": value + 0.1,
        "signature": f"set:{dataset}/{split}|metric:{metric}|protocol:{protocol}|data:{abs(hash(dataset))}|len:64",
    }  # fmt: skip


def test_sts_table_has_average_and_row_per_protocol():
    years = [row(name, 0.5 + number / 100) for number, name in enumerate(YEARS)]
    weighted = [row(name, 0.7, protocol="wmean") for name in YEARS[:5]]
    decoys = [row("stsb", 0.99, split="dev"), row("sts12", 0.98, subset="MSRpar")]
    [(title, rows)] = paper_tables(pl.DataFrame([*decoys, *years, *weighted]), tables())
    assert "without SMT" in title
    assert list(rows[0]) == [
        "system", "figure", "STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.",
    ]  # fmt: skip
    assert list(rows[0].values()) == [
        "mine_1", "spearman, all", "50.00", "51.00", "52.00", "53.00", "54.00", "55.00", "56.00", "53.00",
    ]  # fmt: skip
    # A set without subsets has the same score under every protocol.
    assert list(rows[1].values())[1:] == ["spearman, wmean", *["70.00"] * 5, "55.00", "56.00", "65.86"]


def test_missing_set_is_a_dash_and_removes_the_average():
    [(_, rows)] = paper_tables(pl.DataFrame([row(name, 0.5) for name in YEARS if name != "sickr"]), tables())
    assert (rows[0]["SICK-R"], rows[0]["Avg."]) == ("–", "–")


def test_tokenised_sets_and_sts17_tracks_have_separate_tables():
    scores = pl.DataFrame([row("sts12", 0.5), row("sts12-tok", 0.4), row("sts17-es-en", 0.3), row("sts17-it-en", 0.2)])
    drawn = dict(paper_tables(scores, tables()))
    assert len(drawn) == 4
    (tracks,) = drawn["STS 2017, the eight tracks of BSL's Table 3"]
    assert list(tracks)[2:] == ["EN-EN", "ES-ES", "AR-AR", "EN-AR", "EN-DE", "EN-TR", "EN-ES", "EN-FR", "Avg."]
    assert tracks["EN-ES"] == "30.00"


def test_senteval_accuracies_form_a_table_with_average():
    probes = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
    [(title, rows)] = paper_tables(
        pl.DataFrame([row(name, 0.8, metric="accuracy", protocol="senteval") for name in probes]), tables()
    )
    assert title == "SentEval transfer"
    assert rows[0]["figure"] == "accuracy, senteval"
    assert rows[0]["Avg."] == "80.00"


def test_latex_table_escapes_text_and_aligns_columns():
    [(title, rows)] = paper_tables(pl.DataFrame([row("sts12", 0.5)]), tables())
    lines = as_latex(title, rows).splitlines()
    assert lines[1] == r"\begin{tabular}{llcccccccc}"
    assert lines[5].startswith(r"mine\_1 & spearman, all & 50.00 & -- & ")
    assert lines[-1] == r"\end{tabular}"
    [(title, rows)] = paper_tables(pl.DataFrame([row("sts12", 0.5, model="a^2 ~b\\c")]), tables())
    assert (
        as_latex(title, rows).splitlines()[5].startswith(r"a\textasciicircum{}2 \textasciitilde{}b\textbackslash{}c & ")
    )


def test_evaluation_page_lists_missing_sets_and_differences():
    comparison = pl.DataFrame(
        [{**row("sts12", 0.021), "reference": "theirs", "p_value": 0.004, "ci_low": 0.01, "ci_high": 0.03}]
    )
    missing = {"sickr/test": "nobody has it; copy it"}
    page = markdown(evaluation_page(pl.DataFrame([row("sts12", 0.5)]), comparison, missing, tables()))
    assert "| sickr/test | nobody has it; copy it |" in page
    assert "| mine_1 | theirs | sts12 test | +2.10 [+1.00, +3.00] | 0.004 |" in page
    assert "50.00 [40.0, 60.0]" in page


def _difference(dataset, value, low, high):
    return {**row(dataset, value), "model": "a/mine", "reference": "b/theirs", "p_value": 0.002} | {
        "ci_low": low,
        "ci_high": high,
    }


def test_evaluation_page_opens_with_a_finding_and_means_and_folds_the_papers_tables():
    scores = pl.DataFrame(
        [
            row(name, value, model=model)
            for model, value in (("b/theirs", 0.5), ("a/mine", 0.6))
            for name in ("sts12", "sts13")
        ]
    )
    sets = [_difference("sts12", 0.1, 0.05, 0.2), _difference("sts13", 0.1, 0.05, 0.2)]
    comparison = pl.DataFrame([*sets, _difference("mean of sets", 0.0525, 0.046, 0.0587)])
    page = markdown(evaluation_page(scores, comparison, {}, tables(), draws=999))
    assert page.startswith(
        "# Evaluation of theirs and mine\n\nmine is above theirs by 5.25 [4.60, 5.87] on the mean of 2 "
    )
    assert "| mean of 2 test sets: spearman, all | 50.00 | 60.00 |" in page
    assert "≤ 0.002" in page
    assert page.index("### All lines of the papers") > page.index("## Differences")
    below = comparison.with_columns(value=-pl.col("value"), ci_low=-pl.col("ci_high"), ci_high=-pl.col("ci_low"))
    assert "mine is below theirs by 5.25 [4.60, 5.87] on" in markdown(evaluation_page(scores, below, {}, tables()))
    same = comparison.with_columns(ci_low=pl.lit(-0.01))
    said = evaluation_page(scores, same, {}, tables()).sentence
    assert said.startswith(
        "No significant difference of mine from theirs on the mean of 2 test sets (spearman × 100): +5"
    )


def test_encoders_with_the_same_name_keep_their_paths_in_the_title():
    scores = pl.DataFrame([row("sts12", 0.5, model=model) for model in ("a/model", "b/model")])
    assert evaluation_page(scores, None, {}, tables()).title == "Evaluation of a/model and b/model"
