"""The page of an adaptation shows verdict, evidence and settings."""

from __future__ import annotations

from dataclasses import asdict, replace

import polars as pl
from huggingface_hub import ModelCard

from models.evaluation.proof import BeforeAfter
from models.evaluation.sweep import MEAN
from models.evaluation.verdict import Verdict, general_evidence, judged
from storage.artifacts.refs import CheckpointRef
from storage.sources.own_text import TextSource
from tasks.rendering.blocks import Page, Part, Prose
from tasks.rendering.evidence import proof_rows
from tasks.rendering.html import html
from tasks.rendering.markdown import markdown
from tasks.reporting.adaptation import Adapted, adaptation_page, adapted_card, evidence_part, training_part

ROW = BeforeAfter("neighbour", "MRR", "counts", 0.2, 0.231, 0.031, 0.01, 0.05, 0.002, 900, 9876)
HEADLINES = {
    **dict.fromkeys(("stsb", "sts12"), ("spearman", "pearson")),
    "mrpc": ("accuracy", "f1"),
    **dict.fromkeys(("askubuntu", "twitterpara"), ("average precision",)),
    "reddit": ("v-measure",),
    "afs": ("pearson", "spearman"),
}
PLACE = {"subset": "all", "split": "test", "metric": "spearman", "protocol": "all"}


def _comparison(dataset: str, value: float) -> dict[str, object]:
    spread = {"value": value, "n": 10, "ci_low": value - 0.01, "ci_high": value + 0.01, "p_value": 0.5, "seed": 0}
    return {"model": "adapted", "reference": "start", "dataset": dataset, **PLACE, **spread}


def _scores(model: str, shift: float) -> pl.DataFrame:
    """Return scores of sets of every kind, both headline scores and others."""
    kinds = [
        ("stsb", "all", "spearman", "all"), ("stsb", "all", "pearson", "all"), ("sts12", "all", "spearman", "all"),
        ("sts12", "MSRpar", "spearman", "all"), ("sts12", "all", "spearman", "wmean"),
        ("mrpc", "all", "accuracy", "fast"), ("mrpc", "all", "f1", "fast"),
        ("askubuntu", "all", "average precision", "useb"), ("twitterpara", "mean", "average precision", "useb"),
        ("twitterpara", "mean", "spearman", "useb"),
        ("reddit", "all", "v-measure", "mteb"), ("afs", "mean", "spearman", "unsupervised"),
        ("afs", "mean", "pearson", "unsupervised"),
    ]  # fmt: skip
    rows = [
        {"model": model, "dataset": name, "subset": subset, "split": "test", "metric": metric, "protocol": protocol,
         "value": 0.5 + shift, "n": 10}
        for name, subset, metric, protocol in kinds
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_each_general_set_has_its_own_figure_and_may_forbid_where_that_has_an_interval() -> None:
    scores = [_scores("start", 0.0), _scores("adapted", -0.05)]
    compared = pl.DataFrame([_comparison(name, -0.05) for name in ("stsb", "sts12", MEAN)])
    rows = {row.evidence: row for row in general_evidence(scores, [compared], HEADLINES)}
    assert {name for name, row in rows.items() if row.role == "guard"} == {"stsb test", "sts12 test"}
    assert {name: row.metric for name, row in rows.items() if not name.startswith(MEAN)} == {
        "stsb test": "Spearman", "sts12 test": "Spearman", "mrpc test (fast)": "accuracy",
        "askubuntu test (useb)": "average precision", "twitterpara test (useb)": "average precision",
        "reddit test (mteb)": "v-measure", "afs test (unsupervised)": "pearson",
    }  # fmt: skip
    assert rows[f"{MEAN} test"].role == "shown"
    assert (rows["stsb test"].before, rows["stsb test"].after, rows["stsb test"].p_value) == (0.5, 0.45, 0.5)
    assert general_evidence([], [], {}) == []


def test_the_set_that_fell_most_forbids_though_the_mean_rose_and_one_without_interval_does_not() -> None:
    scores = [_scores("start", 0.0), _scores("adapted", 0.01)]
    fell = [scores[0], scores[1].with_columns(value=pl.when(dataset="sts12").then(0.45).otherwise("value"))]
    both = pl.DataFrame(
        [_comparison(name, value) for name, value in [("stsb", -0.01), ("sts12", -0.05), (MEAN, 0.005)]]
    )
    assert judged([ROW, *general_evidence(scores, [], HEADLINES)], 0.5).word == "BETTER"
    worst = judged([ROW, *general_evidence(fell, [both], HEADLINES)], 0.5)
    assert worst.word == "WORSE"
    assert worst.reason.startswith("Spearman × 100 -5.00 [-6.00, -4.00] on sts12 test")
    assert judged([ROW, *general_evidence(fell, [], HEADLINES)], 0.5).word == "BETTER"


WEIGHING = pl.DataFrame([(0.0, 0.7), (1.0, 0.69), (0.5, 0.699)], schema=["share", "value"], orient="row")


def _adapted(word: str) -> Adapted:
    verdict = Verdict(word, "MRR × 100 +3.10", "Use it.")  # type: ignore[arg-type]
    return Adapted("some/encoder", verdict, pl.DataFrame([asdict(ROW)]), 0.5, ("crops", "round trips"))


def _page(adapted: Adapted) -> Page:
    text = Part("Your text", [Prose("a|b.csv")])
    parts = [evidence_part(adapted.proof, ("sickr/test",)), training_part(adapted, WEIGHING, None), text]
    return adaptation_page(adapted, parts)


def test_adaptation_page_shows_verdict_evidence_and_exported_encoder() -> None:
    page = markdown(_page(_adapted("BETTER")))
    assert "**BETTER** than the original encoder: MRR × 100 +3.10. Use it. Exported: the adapted encoder." in page
    assert (
        "| neighbour | +3.10 [+1.00, +5.00] | 0.002 | 20.0 | 23.1 | MRR | decides | 900 | 9,876 | the next sent" in page
    )
    assert "Exported weights: 50 % from the trained encoder, the rest from the original encoder." in page
    assert "| 0.5 | 69.9 |" in page
    assert "| 0 | 70.0 |" in page
    assert "Not evaluated because they are not available: sickr/test." in page
    assert "a\\|b.csv" in page
    assert "Exported: the original encoder, unchanged." in markdown(_page(_adapted("NO DIFFERENCE")))


def test_page_shows_the_full_name_of_an_embedded_set() -> None:
    proof = pl.DataFrame([asdict(ROW) | {"evidence": "embedded:stsb test", "role": "guard"}])
    assert "| embedded:stsb test | +3.10 [" in markdown(_page(replace(_adapted("BETTER"), proof=proof)))


def test_page_explains_the_dropout_training_goal() -> None:
    said = markdown(_page(replace(_adapted("BETTER"), views=("dropout",))))
    assert "Training goal: two encodings under dropout of a sentence are similar." in said


def test_proof_rows_show_role_and_difference_without_interval() -> None:
    (row,) = proof_rows(pl.DataFrame([asdict(ROW)]))
    assert row["role"] == "decides"
    unsure = asdict(ROW) | {"before": None, "ci_low": None, "ci_high": None, "p_value": None}
    (bare,) = proof_rows(pl.DataFrame([unsure]))
    assert (bare["before"], bare["difference"], bare["p"]) == ("–", "+3.10", "")


def test_html_page_has_verdict_badge_chart_and_interval() -> None:
    page = html(_page(_adapted("NO DIFFERENCE")))
    assert '<span class="badge no-difference">NO DIFFERENCE</span>' in page
    assert "Exported: the original encoder, unchanged." in page
    assert 'aria-label="Difference × 100 from the original encoder. neighbour, MRR: +3.10"' in page
    assert "<small>+1.00 to +5.00</small>" in page
    assert "Loss" not in page


def test_adapted_card_names_adapted_or_unchanged_original_encoder() -> None:
    source = TextSource(name="mine", digest="d", format="csv", texts=("body",), files=())
    adapted, kept = (
        adapted_card(_adapted(word), CheckpointRef(key="c" * 64), [source], ("Helsinki-NLP/opus-mt-en-de",))
        for word in ("BETTER", "WORSE")
    )
    header = ModelCard(adapted).data
    assert (header.base_model, header.language, header.license) == ("some/encoder", ["en"], "other")
    assert "| translation of views | Helsinki-NLP/opus-mt-en-de | not declared here |" in adapted
    assert "Exported weights: 50 % from the trained encoder" in adapted
    assert "this is the original encoder, byte for byte" in kept
    assert "| sentences |" not in kept
