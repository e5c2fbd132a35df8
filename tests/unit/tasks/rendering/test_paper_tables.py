"""Scores are arranged in the papers' tables, with published rows below them; the page of an evaluation."""

import polars as pl
import pytest

from bsl.models.evaluation.published import rows_of
from bsl.models.evaluation.significance.hierarchical import holm
from bsl.models.evaluation.sweep import with_holm
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.artifacts.schemas import TABLES
from bsl.storage.artifacts.store import Store
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.figures import EvaluationFigures
from bsl.tasks.rendering.blocks import split_interval
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.rendering.paper_tables import as_latex, paper_tables, tables_of
from bsl.tasks.rendering.score_tables import mean_rows
from bsl.tasks.reporting.evaluation import evaluation_page, findings_of, reversed_scores
from bsl.tasks.reporting.result_tables import result_tables
from tests.corpora import score_row

YEARS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
HEADS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
PROBES = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
TRACKS = ("EN-EN", "ES-ES", "AR-AR", "EN-AR", "EN-DE", "EN-TR", "EN-ES", "EN-FR")


def row(dataset, value, **changed):
    made = score_row(dataset, value, **{"model": "mine_1", "ci_low": value - 0.1, "ci_high": value + 0.1, **changed})
    line = "set:{dataset}/{split}|metric:{metric}|protocol:{protocol}|data:{key}|len:64"
    return made | {"signature": line.format(key=abs(hash(dataset)), **made)}


ALL = [row(name, 0.5 + number / 100) for number, name in enumerate(YEARS)]
WEIGHTED = [row(name, 0.7, protocol="wmean") for name in YEARS[:5]]
DECOYS = [row("stsb", 0.99, split="dev"), row("sts12", 0.98, subset="MSRpar")]
FIFTY = [f"{value}.00" for value in range(50, 57)]


def titled(rows):
    return {title: (lines, notes) for title, lines, notes in paper_tables(pl.DataFrame(rows), tables())}


def test_sts_table_has_average_and_row_per_protocol():
    [(title, (lines, notes))] = titled([*DECOYS, *ALL, *WEIGHTED]).items()
    assert "without SMT" in title
    assert list(lines[0]) == ["system", "figure", *HEADS, "Avg."]
    assert list(lines[0].values()) == ["mine_1", "spearman, all", *FIFTY, "53.00"]
    # A set without subsets has the same score under every protocol.
    assert list(lines[1].values())[1:] == ["spearman, wmean", *["70.00"] * 5, "55.00", "56.00", "65.86"]
    assert notes[0].startswith("mine_1, spearman, all: set:sts12/test,sts13/test,")
    [(lines, _)] = titled([one for one in ALL if one["dataset"] != "sickr"]).values()
    assert (lines[0]["SICK-R"], lines[0]["Avg."]) == ("–", "–")


def test_tokenised_sets_tracks_and_accuracies_have_separate_tables():
    accuracies = [row(name, 0.8, metric="accuracy", protocol="senteval") for name in PROBES]
    more = [row("sts12-tok", 0.4), row("sts17-es-en", 0.3), row("sts17-it-en", 0.2)]
    drawn = titled([row("sts12", 0.5), *more, *accuracies])
    assert len(drawn) == 5
    ((tracks,), _) = drawn["STS 2017, the eight tracks of BSL's Table 3"]
    assert list(tracks)[2:] == [*TRACKS, "Avg."]
    assert tracks["EN-ES"] == "30.00"
    ((transfer,), _) = drawn["SentEval transfer"]
    assert list(transfer)[2:] == ["MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC", "Avg."]
    assert (transfer["figure"], transfer["Avg."]) == ("accuracy, senteval", "80.00")


def test_latex_table_escapes_text_and_aligns_columns():
    systems = ("mine_1", "a^2 ~b\\c", "[CLS] of mine")
    [(title, (lines, _))] = titled([row("sts12", 0.5, model=system) for system in systems]).items()
    text = as_latex(title, lines).splitlines()
    assert text[1] == r"\begin{tabular}{llcccccccc}"
    assert text[5].startswith(r"mine\_1 & spearman, all & 50.00 & -- & ")
    assert text[6].startswith(r"a\textasciicircum{}2 \textasciitilde{}b\textbackslash{}c & ")
    assert text[7].startswith(r"{[}CLS] of mine & ")  # `\\[` would be a distance
    assert text[-1] == r"\end{tabular}"


PRINTED = "67.83 71.40 66.88 79.97 73.97 73.74 70.40 72.03"
GAPS = "-17.83 -20.40 -14.88 -26.97 -19.97 -18.74 -14.40 -19.03"
PUBLISHED = {
    "one set": (
        ALL[5:6], ("BSL-BERT",), ["STS-B"],
        [["mine_1", "spearman, all", "55.00"], ["BSL-BERT: BSL, Table 1", "published", "73.74"],
         ["this run minus BSL-BERT", "difference", "-18.74"]],
    ),
    "all sets": (
        ALL, ("BSL-BERT",), [*HEADS, "Avg."],
        [["mine_1", "spearman, all", *FIFTY, "53.00"], ["BSL-BERT: BSL, Table 1", "published", *PRINTED.split()],
         ["this run minus BSL-BERT", "difference", *GAPS.split()]],
    ),
    "no published row": (ALL[:2], (), ["STS12", "STS13"], [["mine_1", "spearman, all", "50.00", "51.00"]]),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "systems", "heads", "cells"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_rows_and_differences_have_the_scored_columns(rows, systems, heads, cells):
    published = [one for system in systems for one in rows_of(system)]
    (table,) = tables_of(pl.DataFrame(rows), tables(), published, "mine_1")
    assert list(table.heads) == ["system", "figure", *heads]
    assert [[split_interval(cell)[0] for cell in line.cells] for line in table.rows] == cells
    assert [line.role for line in table.rows] == ["", "published", "difference"][: len(cells)]
    assert "[" in table.rows[0].cells[2]


def test_published_row_names_who_quotes_it():
    (table,) = tables_of(pl.DataFrame(ALL), tables(), rows_of("IS-BERT-NLI"), "mine_1")
    assert table.rows[1].cells[0] == "IS-BERT-NLI: BSL, Table 1, quoted from Zhang et al., 2020"


def test_mean_of_a_published_row_is_the_printed_one():
    """Regression: SBERT's was 74.86, of the printed columns; rows of a mean alone were left out."""
    published = [
        one for system in ("SBERT", "SimCSE, supervised, BERT-base", "SCL, λ = 0.3") for one in rows_of(system)
    ]
    weighted = [*ALL, *WEIGHTED, *(one | {"protocol": "wmean"} for one in ALL[5:])]
    (table,) = tables_of(pl.DataFrame(weighted), tables(), published, "mine_1")
    means = {line.cells[0].partition(":")[0]: line.cells[-1] for line in table.rows if line.role == "published"}
    assert means == {"SBERT": "74.89", "SimCSE, supervised, BERT-base": "81.57", "SCL, λ = 0.3": "–"}
    gaps = [line.cells[-1] for line in table.rows if line.role == "difference"]
    assert gaps == ["-21.89", "-28.57", "–"]  # 53.00 is the mean of this run


def difference(dataset, value, low, high):
    pair = {"model": "a/mine", "reference": "b/theirs", "p_value": 0.002}
    return row(dataset, value, **pair, ci_low=low, ci_high=high)


SCORES = pl.DataFrame(
    [row(name, value, model=model) for model, value in (("b/theirs", 0.5), ("a/mine", 0.6)) for name in YEARS[:2]]
)
COMPARISON = pl.DataFrame(
    [*(difference(name, 0.1, 0.05, 0.2) for name in YEARS[:2]), difference("mean of sets", 0.0525, 0.046, 0.0587)]
)
BELOW = COMPARISON.with_columns(value=-pl.col("value"), ci_low=-pl.col("ci_high"), ci_high=-pl.col("ci_low"))
FINDINGS = {
    "above": (COMPARISON, "mine is above theirs by 5.25 [4.60, 5.87] on the mean of 2 test sets (spearman × 100)."),
    "below": (BELOW, "mine is below theirs by 5.25 [4.60, 5.87] on the mean of 2 test sets"),
    "same": (
        COMPARISON.with_columns(ci_low=pl.lit(-0.01)),
        "No significant difference of mine from theirs on the mean",
    ),
    "p": (COMPARISON.with_columns(p_value=pl.lit(0.06)), "No significant difference of mine from theirs on the mean"),
    "one set": (COMPARISON[:1], "mine is above theirs by 10.00 [5.00, 20.00] on sts12 test (spearman × 100)."),
}


@pytest.mark.parametrize(("comparison", "finding"), FINDINGS.values(), ids=FINDINGS)
def test_evaluation_page_opens_with_a_finding(comparison, finding):
    assert evaluation_page(SCORES, comparison, {}, (), tables()).sentence.startswith(finding)


def test_p_of_several_encoders_is_corrected_as_in_a_sweep():
    """Regression: `bsl evaluate` of three encoders printed uncorrected p, `bsl compare` Holm's."""
    raw = [0.002, 0.04, 0.012]
    found = [difference("sts12", 0.1, 0.05, 0.2) | {"model": f"a/{p}", "p_value": p} for p in raw]
    corrected = with_holm(pl.DataFrame([*found, difference("sts13", 0.1, 0.05, 0.2)]))
    assert corrected["p_value"].to_list() == [*holm(raw), 0.002]
    scores = pl.DataFrame([row("sts12", 0.5, model=f"a/{name}") for name in ("theirs", *raw)])
    page = markdown(evaluation_page(scores, corrected[:3], {}, (), tables(), draws=999))
    assert "corrected by Holm's method" in page
    assert "| a/0.002 | b/theirs | sts12 test | +10.00 [+5.00, +20.00] | ≤ 0.006 |" in page


@pytest.mark.parametrize(("others", "said"), [(1, False), (2, True)])
def test_terminal_says_whether_p_is_corrected(tmp_path, others, said):
    store, ref = Store(str(tmp_path)), ArtifactRef(kind="evaluation", key="0" * 64)
    names = [f"a/{number}" for number in range(others)]
    compared = [difference("sts12", 0.1, 0.05, 0.2) | {"model": name} for name in names]
    written = {"scores": SCORES, "comparison": pl.DataFrame(compared)}
    with store.draft(ref, Provenance(stage_version=1, config={}, inputs={})) as draft:
        for name, table in written.items():
            draft.write(table.select(TABLES[name].names()).cast(dict(TABLES[name])), name)
        draft.note(EvaluationFigures(missing={}, notes=[]))
    titles = [title for title, _ in result_tables(store, store.manifest(ref))]
    assert ("with p, corrected by Holm's method" in titles[-1]) is said


def test_own_scores_that_fall_for_all_encoders_are_named():
    """Regression: numbers of classes of inference gave −34 without a word."""
    own = {"metric": "spearman", "n": 400}
    low, high, few = (row("labels:nli.csv", value, **own) for value in (-0.34, -0.12, -0.09))
    (said,) = reversed_scores(pl.DataFrame([low, high, {**low, "dataset": "sts12"}]))
    assert said.startswith("Scores of labels:nli.csv fall as similarity rises, for all encoders here. Are they dist")
    assert not [*reversed_scores(pl.DataFrame([low, few]))]


def test_mean_of_transfer_sets_is_that_of_the_papers():
    """Regression: SST-5 was in the mean, and the cross-validated sets were not."""
    splits = {**dict.fromkeys(("mr", "cr", "subj", "mpqa"), "all"), **dict.fromkeys(("sst2", "trec", "mrpc"), "test")}
    accuracy = {"metric": "accuracy", "protocol": "fast"}
    sets = [row(name, 0.8, split=split, **accuracy) for name, split in splits.items()]
    others = [row("sst5", 0.4, **accuracy), row("labels:own.csv", 0.4, split="all", **accuracy)]
    (mean,) = mean_rows(pl.DataFrame([*sets, *others]))
    assert mean == {"figure": "mean of 7 sets: accuracy, fast", "mine_1": "80.00"}


def test_raw_and_tokenised_text_of_the_same_pairs_count_as_one_set_in_a_mean():
    """Regression: sts13 counted twice beside stsb, and both copies of a set were two sets."""
    (mean,) = mean_rows(pl.DataFrame([row("sts13", 0.5), row("sts13-tok", 0.7), row("stsb", 0.8)]))
    assert mean == {"figure": "mean of 2 test sets: spearman, all", "mine_1": "70.00"}
    assert not mean_rows(pl.DataFrame([row("sts13", 0.5), row("sts13-tok", 0.7)]))
    names = ("sts13", "sts13-tok", "stsb", "mean of sets")
    (found,) = findings_of(SCORES, pl.DataFrame([difference(name, 0.1, 0.05, 0.2) for name in names]))
    assert found.endswith("on the mean of 2 test sets (spearman × 100).")


def test_evaluation_page_has_means_and_differences_and_short_names_only_if_they_differ():
    page = markdown(evaluation_page(SCORES, COMPARISON, {}, (), tables(), draws=999))
    assert "| mean of 2 test sets: spearman, all | 50.00 | 60.00 |" in page
    assert "| a/mine | b/theirs | sts12 test | +10.00 [+5.00, +20.00] | ≤ 0.002 |" in page
    assert page.index("### All lines of the papers") > page.index("## Differences")
    assert "(STS13 without SMT): figures × 100:\n\n| system" in page  # the intervals are on the HTML page only
    same = pl.DataFrame([row("sts12", 0.5, model=model) for model in ("a/model", "b/model")])
    assert evaluation_page(same, None, {}, (), tables()).title == "Evaluation of a/model and b/model"
