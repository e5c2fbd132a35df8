"""The page and the card of an adaptation: what the encoder is better for, what is exported, what it is made of."""

from dataclasses import asdict, replace

import polars as pl
import pytest
from huggingface_hub import ModelCard

from bsl.models.evaluation.proof import AdaptationComparison, comparisons_without_draws
from bsl.models.evaluation.verdict import Verdict, adaptation_verdict
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.artifacts.schemas import TRAINING_LOG
from bsl.storage.sources.labels import LabelSource
from bsl.storage.sources.own_text import TextSource
from bsl.tasks.rendering.blocks import Part
from bsl.tasks.rendering.evidence import answer_blocks
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown
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
SEARCH = replace(
    ROW, use="search", role="reported", before=0.176, after=0.07, difference=-0.106, ci_low=-0.13, ci_high=-0.09
)
CLASSES = AdaptationComparison(
    "your labels", "accuracy", "classify", "decides", 0.844, 0.92, 0.076, 0.04, 0.11, 0.002, 500
)
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
LABELS = LabelSource(digest="d", format="csv", kind="classes", texts=("text",), label="topic", path="/x/topics.csv")
BASE = BaseCard(licence="apache-2.0", languages=("en", "de"), base="org/base")
TAUGHT = CONTENT.model_copy(
    update={"views": ("labels",), "labels": LABELS, "base": BASE, "encoder": "./folder", "translators": ()}
)
TRAINING = training_summary(CONTENT.views, 0.5)


def adapted(word, proof=PROOF, training=TRAINING, **changed):
    verdict = Verdict(word, "MRR × 100 +3.10", "Use it.", "search in your text")
    return Adapted(verdict, proof, training, **changed)


def card(subject, content=CONTENT):
    return adapted_card(content, subject, CheckpointRef(key="c" * 64))


EXPORTED = {
    "better": (adapted("BETTER"), "the adapted encoder"),
    "accepted": (adapted("NOT PROVED", accepted=True), "the adapted encoder without proof, by --accept"),
    "worse": (adapted("WORSE"), "the original encoder, unchanged"),
    "not proved": (adapted("NOT PROVED"), "the original encoder, unchanged"),
    "no difference": (adapted("NO DIFFERENCE"), "the original encoder, unchanged"),
}


@pytest.mark.parametrize(("subject", "exported"), EXPORTED.values(), ids=EXPORTED)
def test_page_and_card_name_the_exported_encoder_and_its_materials(subject, exported):
    text, is_adapted = card(subject), "adapted" in exported
    assert f"Exported: {exported}." in markdown(adaptation_page("e", subject, []))
    assert f"A sentence encoder: {exported}." in text
    assert ("byte for byte" in text) != is_adapted
    header = ModelCard(text).data
    assert (header.base_model, header.language) == ("some/encoder", ["en"] if is_adapted else None)
    for line in (
        TRAINING,
        "| sentences | mine |",
        "| translation of views | Helsinki-NLP/opus-mt-en-de | not declared",
    ):
        assert (line in text) == is_adapted


def test_card_repeats_licence_and_languages_of_the_original_encoder():
    """Files of one's own have no licence to repeat; the base's model is named if the folder's name is no Hub id."""
    text = card(adapted("BETTER", split="Split by text."), TAUGHT)
    header = ModelCard(text).data
    assert (header.license, header.language, header.base_model) == ("apache-2.0", ["en", "de"], "org/base")
    assert "| labels | topics | your own data |" in text
    assert "| sentences |" not in text
    rehearsed = TAUGHT.model_copy(update={"rehearsal": "embedded:stsb/train", "rehearses_text": True})
    text = card(adapted("BETTER", split="Split by text."), rehearsed)
    assert "| sentences | mine | your own data |" in text
    assert "| general sentences | embedded:stsb/train | scores CC BY-SA 4.0; texts by part, see NOTICE |" in text
    assert ModelCard(text).data.license == "other"
    assert "Labels: topics (classes)." in text
    assert "Split by text." in text


def test_card_names_files_and_models_of_the_user_without_their_folders():
    forgot = replace(ROW, evidence="labels:/home/me/secret/rows.csv all", use=None, role="vetoes", difference=-0.02)
    verdict = adaptation_verdict([CLASSES, forgot], 0.5, "proof.share=0.1")
    content = CONTENT.model_copy(update={"encoder": "/home/me/secret/start"})
    text = card(Adapted(verdict, pl.DataFrame([asdict(forgot)]), "Trained.", accepted=True), content)
    assert "secret" not in text
    assert text.count("labels:rows.csv all") == 2  # sentence and table
    assert "| original encoder | start |" in text


def test_page_and_card_name_each_use_and_leave_out_search_after_a_loss():
    """Regression: the page of an encoder that lost half of its MRR ended with `bsl search`."""
    losing = pl.DataFrame([asdict(CLASSES), asdict(SEARCH)])
    subject = Adapted(adaptation_verdict([CLASSES, SEARCH], 0.5, "proof.share=0.1"), losing, "Trained.")
    parts = [Part("Answers", answer_blocks(losing)), use_part("checkpoint/1a2b", subject.worse_uses)]
    page, text = markdown(adaptation_page("a adapted to b.csv", subject, parts)), card(subject)
    for shown in (page, text):
        assert f"**BETTER** {subject.verdict.sentence}" in shown
        assert "| classifying | better | 84.4 → 92.0 | +7.60 [+4.00, +11.00] | 0.002 | decides |" in shown
        assert "| search in your text | worse | 17.6 → 7.0 | -10.60 [-13.00, -9.00] | 0.002 | reported" in shown
        assert "bsl search" not in shown
    assert "bsl pairs checkpoint/1a2b" in page
    kept = replace(subject, verdict=replace(subject.verdict, word="WORSE"))
    assert kept.worse_uses == set()
    assert "bsl search" in card(kept)


def test_page_shows_figures_without_draws_and_what_was_not_evaluated():
    """tests/golden pins the other figures."""
    bare = asdict(ROW) | {"evidence": "embedded:stsb test", "ci_low": None, "ci_high": None, "p_value": None}
    proof = pl.DataFrame([asdict(ROW), bare | {"use": None}])
    log = pl.DataFrame({name: [None] for name in TRAINING_LOG}, schema=TRAINING_LOG)
    weighing = pl.DataFrame([(0.5, 0.699)], schema=["share", "value"], orient="row")
    subject = adapted("NO DIFFERENCE", proof, training_summary(("dropout",), 0.25))
    page = adaptation_page(CONTENT.encoder, subject, figure_parts(subject, CONTENT.missing, weighing, log))
    assert "| embedded:stsb test | +3.10 |  | 20.0 |" in markdown(page)
    assert "under dropout of a sentence are similar. Weights of the adapted encoder: 25 % from" in markdown(page)
    assert "Not evaluated because they are not available: sickr/test." in markdown(page)
    assert 'class="badge no-difference">NO DIFFERENCE</span>' in html(page)


def test_sets_without_draws_are_reported_by_their_main_metric_and_the_largest_general_loss_is_named():
    kinds = [
        ("mrpc", "all", "accuracy", "fast"), ("mrpc", "all", "f1", "fast"), ("reddit", "all", "v-measure", "mteb"),
        ("afs", "mean", "spearman", "unsupervised"), ("afs", "mean", "pearson", "unsupervised"),
    ]  # fmt: skip
    scores = pl.DataFrame(kinds, schema=["dataset", "subset", "metric", "protocol"], orient="row")
    before, after = (scores.with_columns(split=pl.lit("test"), value=pl.lit(value), n=10) for value in (0.5, 0.45))
    headlines = {"mrpc": ("accuracy", "f1"), "reddit": ("v-measure",), "afs": ("pearson", "spearman")}
    rows = comparisons_without_draws(before, after, headlines)
    assert {(row.before, row.after, row.role) for row in rows} == {(0.5, 0.45, "reported")}
    assert [(row.evidence, row.metric) for row in rows] == [
        ("mrpc test (fast)", "accuracy"), ("reddit test (mteb)", "v-measure"), ("afs test (unsupervised)", "pearson"),
    ]  # fmt: skip
    loss = AdaptationComparison("stsb test", "Spearman", None, "vetoes", 0.5, 0.45, -0.05, -0.06, -0.04, 0.002, 10)
    smaller = replace(loss, evidence="sts12 test", difference=-0.01)
    assert adaptation_verdict([ROW, *rows], 0.5, "").word == "BETTER"
    worst = adaptation_verdict([ROW, smaller, loss], 0.5, "")
    assert (worst.word, worst.reason[:42]) == ("WORSE", "Spearman × 100 -5.00 [-6.00, -4.00] on sts")
