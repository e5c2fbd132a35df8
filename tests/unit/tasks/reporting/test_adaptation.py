"""The page of an adaptation shows verdict, evidence and settings."""

from __future__ import annotations

from dataclasses import asdict, replace

import polars as pl
from huggingface_hub import ModelCard

from bsl.models.evaluation.proof import AdaptationComparison, comparisons_without_draws
from bsl.models.evaluation.verdict import Verdict, adaptation_verdict
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.artifacts.schemas import TRAINING_LOG
from bsl.storage.sources.labels import LabelSource
from bsl.storage.sources.own_text import TextSource
from bsl.tasks.rendering.blocks import Page, Part, Prose
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.rendering.score_tables import answer_blocks, proof_rows
from bsl.tasks.reporting.adaptation import (
    AdaptationContent,
    Adapted,
    adaptation_page,
    adapted_card,
    figure_parts,
    training_summary,
)
from bsl.tasks.reporting.card import BaseCard
from bsl.tasks.reporting.sections import use_part

ROW = AdaptationComparison("neighbour", "MRR", "search", "decides", 0.2, 0.231, 0.031, 0.01, 0.05, 0.002, 900)
LOSS = AdaptationComparison("stsb test", "Spearman", None, "vetoes", 0.5, 0.45, -0.05, -0.06, -0.04, 0.002, 10)
HEADLINES = {"mrpc": ("accuracy", "f1"), "reddit": ("v-measure",), "afs": ("pearson", "spearman")}


def _scores(model: str, shift: float) -> pl.DataFrame:
    """Return scores of sets without draws, both headline scores and others."""
    kinds = [
        ("mrpc", "all", "accuracy", "fast"), ("mrpc", "all", "f1", "fast"),
        ("reddit", "all", "v-measure", "mteb"), ("afs", "mean", "spearman", "unsupervised"),
        ("afs", "mean", "pearson", "unsupervised"),
    ]  # fmt: skip
    rows = [
        {"model": model, "dataset": name, "subset": subset, "split": "test", "metric": metric, "protocol": protocol,
         "value": 0.5 + shift, "n": 10}
        for name, subset, metric, protocol in kinds
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_set_without_bootstrap_has_a_single_score_without_veto() -> None:
    rows = comparisons_without_draws(_scores("start", 0.0), _scores("adapted", -0.05), HEADLINES)
    assert [(row.evidence, row.metric, row.role) for row in rows] == [
        ("mrpc test (fast)", "accuracy", "reported"),
        ("reddit test (mteb)", "v-measure", "reported"),
        ("afs test (unsupervised)", "pearson", "reported"),
    ]
    assert {(row.before, row.after) for row in rows} == {(0.5, 0.45)}
    assert adaptation_verdict([ROW, *rows], 0.5, "proof.share=0.1").word == "BETTER"


def test_largest_guard_set_drop_makes_the_verdict_worse() -> None:
    assert adaptation_verdict([ROW, replace(LOSS, difference=-0.004)], 0.5, "proof.share=0.1").word == "BETTER"
    worst = adaptation_verdict(
        [ROW, replace(LOSS, evidence="sts12 test", difference=-0.01), LOSS], 0.5, "proof.share=0.1"
    )
    assert worst.word == "WORSE"
    assert worst.reason.startswith("Spearman × 100 -5.00 [-6.00, -4.00] on stsb test")


SEARCH = replace(
    ROW, use="search", role="reported", before=0.176, after=0.07, difference=-0.106, ci_low=-0.13, ci_high=-0.09
)
CLASSES = AdaptationComparison(
    "your labels", "accuracy", "classify", "decides", 0.844, 0.92, 0.076, 0.04, 0.11, 0.002, 500
)
LOSING = pl.DataFrame([asdict(CLASSES), asdict(SEARCH)])


def test_page_and_card_name_each_use_and_leave_out_search_after_a_loss() -> None:
    """Regression: the page of an encoder that lost half of its MRR ended with `bsl search`."""
    verdict = adaptation_verdict([CLASSES, SEARCH], 0.5, "proof.share=0.1")
    said = (
        "**BETTER** for classifying than the original encoder: accuracy × 100 84.4 → 92.0, +7.60 [+4.00, +11.00], but "
        "worse for search in your text: MRR × 100 17.6 → 7.0, -10.60 [-13.00, -9.00]. Use the adapted encoder for "
        "classifying on text of this kind, and the original encoder for search in your text."
    )
    better = "| classifying | better | 84.4 → 92.0 | +7.60 [+4.00, +11.00] | 0.002 | decides |"
    worse = "| search in your text | worse | 17.6 → 7.0 | -10.60 [-13.00, -9.00] | 0.002 | reported only |"
    adapted = Adapted(verdict, LOSING, "Trained.")
    parts = [Part("Answers", answer_blocks(LOSING)), use_part("checkpoint/1a2b", adapted.worse_uses)]
    page = markdown(adaptation_page("a adapted to b.csv", adapted, parts))
    card = adapted_card(CONTENT, adapted, CheckpointRef(key="c" * 64))
    for text in (page, card):
        assert said in text
        assert better in text
        assert worse in text
        assert "bsl search" not in text
    assert "bsl pairs checkpoint/1a2b" in page
    assert "bsl evaluate path/to/this/folder" in card
    kept = Adapted(replace(verdict, word="WORSE"), LOSING, "Trained.")
    assert kept.worse_uses == set()
    assert "bsl search" in adapted_card(CONTENT, kept, CheckpointRef(key="c" * 64))


WEIGHING = pl.DataFrame([(0.0, 0.7), (1.0, 0.69), (0.5, 0.699)], schema=["share", "value"], orient="row")


PROOF = pl.DataFrame([asdict(ROW)])
CONTENT = AdaptationContent(
    encoder="some/encoder",
    sources=(TextSource(name="mine", digest="d", format="csv", texts=("body",), files=()),),
    labels=None,
    views=("crops", "round trips"),
    missing=("sickr/test",),
    settings="{}",
    translators=("Helsinki-NLP/opus-mt-en-de",),
)
LOG = pl.DataFrame({name: [None] for name in TRAINING_LOG}, schema=TRAINING_LOG)


def _verdict(word: str) -> Verdict:
    return Verdict(word, "MRR × 100 +3.10", "Use it.", "search in your text")  # type: ignore[arg-type]


def _page(word: str, proof: pl.DataFrame = PROOF, views: tuple[str, ...] = CONTENT.views) -> Page:
    adapted = Adapted(_verdict(word), proof, training_summary(views, 0.5))
    sections = figure_parts(adapted, CONTENT.missing, WEIGHING, LOG)
    parts = [*sections, Part("Your text", [Prose("a|b.csv")])]
    return adaptation_page(CONTENT.encoder, adapted, parts)


def test_adaptation_page_shows_verdict_evidence_and_exported_encoder() -> None:
    page = markdown(_page("BETTER"))
    assert "**BETTER** for search in your text than the original encoder: MRR × 100 +3.10. Use it. Exported: " in page
    assert "| neighbour | +3.10 [+1.00, +5.00] | 0.002 | 20.0 | 23.1 | MRR | decides | 900 | the next sent" in page
    assert "Weights of the adapted encoder: 50 % from the trained encoder, the rest from the original encoder." in page
    assert "| 0.5 | 69.9 |" in page
    assert "| 0 | 70.0 |" in page
    assert "Not evaluated because they are not available: sickr/test." in page
    assert "a\\|b.csv" in page
    assert "Exported: the original encoder, unchanged." in markdown(_page("NO DIFFERENCE"))


def test_page_shows_the_full_name_of_an_embedded_set() -> None:
    proof = pl.DataFrame([asdict(ROW) | {"evidence": "embedded:stsb test", "role": "vetoes"}])
    assert "| embedded:stsb test | +3.10 [" in markdown(_page("BETTER", proof))


def test_page_explains_the_dropout_training_goal() -> None:
    said = markdown(_page("BETTER", views=("dropout",)))
    assert "Training goal: two encodings under dropout of a sentence are similar." in said


def test_proof_rows_show_role_and_difference_without_interval() -> None:
    (row,) = proof_rows(pl.DataFrame([asdict(ROW)]))
    assert row["role"] == "decides"
    unsure = asdict(ROW) | {"ci_low": None, "ci_high": None, "p_value": None}
    (bare,) = proof_rows(pl.DataFrame([unsure]))
    assert (bare["difference"], bare["p"]) == ("+3.10", "")


def test_html_page_has_verdict_badge_chart_and_interval() -> None:
    page = html(_page("NO DIFFERENCE"))
    assert '<span class="badge no-difference">NO DIFFERENCE</span>' in page
    assert "Exported: the original encoder, unchanged." in page
    assert 'aria-label="Difference × 100 from the original encoder. search in your text: +3.10"' in page
    assert "<small>+1.00 to +5.00</small>" in page
    assert "Loss" not in page


def test_card_repeats_licence_and_languages_of_the_original_encoder() -> None:
    """Files of one's own have no licence to repeat; the base's model is named if the folder's name is no Hub id."""
    labels = LabelSource(digest="d", format="csv", kind="classes", texts=("text",), label="topic", path="/x/topics.csv")
    base = BaseCard(licence="apache-2.0", languages=("en", "de"), base="org/base")
    content = CONTENT.model_copy(
        update={"views": ("labels",), "labels": labels, "base": base, "encoder": "./folder", "translators": ()}
    )
    adapted = Adapted(_verdict("BETTER"), PROOF, "", split="Split by text.")
    text = adapted_card(content, adapted, CheckpointRef(key="c" * 64))
    header = ModelCard(text).data
    assert (header.license, header.language, header.base_model) == ("apache-2.0", ["en", "de"], "org/base")
    assert "| labels | topics | your own data |" in text
    assert "Labels: topics (classes)." in text
    assert "Split by text." in text


def test_accepted_encoder_is_described_as_adapted_without_proof() -> None:
    adapted = Adapted(_verdict("NOT PROVED"), PROOF, training_summary(CONTENT.views, 0.25), accepted=True)
    text = adapted_card(CONTENT, adapted, CheckpointRef(key="c" * 64))
    assert "the adapted encoder without proof, by --accept" in text
    assert "Weights of the adapted encoder: 25 % from the trained encoder" in text
    assert "byte for byte" not in text
    page = markdown(adaptation_page("e", adapted, []))
    assert "Exported: the adapted encoder without proof, by --accept." in page


def test_adapted_card_names_adapted_or_unchanged_original_encoder() -> None:
    training = training_summary(CONTENT.views, 0.5)
    adapted, kept, unproved = (
        adapted_card(CONTENT, Adapted(_verdict(word), PROOF, training), CheckpointRef(key="c" * 64))
        for word in ("BETTER", "WORSE", "NOT PROVED")
    )
    header = ModelCard(adapted).data
    assert (header.base_model, header.language, header.license) == ("some/encoder", ["en"], "other")
    assert "| translation of views | Helsinki-NLP/opus-mt-en-de | not declared here |" in adapted
    assert "Weights of the adapted encoder: 50 % from the trained encoder" in adapted
    assert "this is the original encoder, byte for byte" in kept
    assert "| sentences |" not in kept
    assert "did not improve" not in unproved
    assert "| sentences | mine |" in adapted
    labels = LabelSource(
        digest="d", format="csv", kind="classes", texts=("text",), label="topic", path="/somewhere/topics.csv"
    )
    taught = adapted_card(
        CONTENT.model_copy(update={"views": ("labels",), "labels": labels}),
        Adapted(_verdict("BETTER"), PROOF, training),
        CheckpointRef(key="c" * 64),
    )
    assert "| labels | topics |" in taught
    assert "| sentences |" not in taught
