"""Verdicts of a run and of an adaptation: which figures decide, which uses are named, and the advice."""

import re
from dataclasses import replace

import polars as pl

from bsl.models.evaluation.proof import AdaptationComparison
from bsl.models.evaluation.sweep import MEAN
from bsl.models.evaluation.verdict import TO_LABEL_ROWS, adaptation_verdict, verdict_of
from tests.every import every

SYSTEMS = ("before BSL (mean)", "after BSL")
GENTLER = "Lower training.lr."
ON_TEST, ON_DEV, ON_MEAN = ("stsb", "test"), ("stsb", "dev"), (MEAN, "test")
GAIN, LOSS, NONE = (0.05, 0.01, 0.09, 0.01), (-0.05, -0.09, -0.01, 0.01), (0.02, -0.01, 0.05, 0.2)


def run_verdict(figures, dev="embedded:stsb/dev", kept_start=False, model="after BSL"):
    names = ("dataset", "split", "value", "ci_low", "ci_high", "p_value")
    made = {"model": model, "reference": SYSTEMS[0], "metric": "spearman"}
    rows = [made | dict(zip(names, (*place, *figure), strict=True)) for place, figure in figures]
    return verdict_of(pl.DataFrame(rows) if rows else None, SYSTEMS, dev, GENTLER, kept_start=kept_start)


@every(
    [
        ([(ON_TEST, GAIN)], {}, "BETTER", "+5.00 [+1.00, +9.00] on stsb test"),
        ([(ON_TEST, LOSS)], {}, "WORSE", f"p 0.010. Use the original encoder. {GENTLER}"),
        ([(ON_TEST, NONE)], {}, "NO DIFFERENCE", "+2.00"),
        ([(ON_TEST, (-0.02, -0.05, 0.0, 0.06))], {}, "NO DIFFERENCE", "-2.00"),
        ([(ON_TEST, (0.0005, 0.0001, 0.0009, 0.01))], {}, "NO DIFFERENCE", "below 0.5 points"),
        # The dev set selected the encoder, if there was one.
        ([(ON_DEV, GAIN)], {}, "NOT TESTED", "evaluation.sets"),
        ([(ON_DEV, GAIN)], {"dev": None}, "BETTER", "on stsb dev"),
        ([(ON_DEV, GAIN), (ON_TEST, LOSS)], {"dev": None}, "WORSE", "on stsb test"),
        ([], {}, "NOT TESTED", "evaluation.sets"),
        ([(ON_TEST, GAIN), (ON_MEAN, LOSS)], {}, "WORSE", f"on {MEAN} test"),
        ([(ON_TEST, (0.05, 0.01, 0.09, 0.0002))], {}, "BETTER", "p <0.001."),
        # Regression: the mean had the set that selected the encoder, if that was a test set.
        ([(("sts12", "test"), GAIN), (ON_TEST, LOSS), (ON_MEAN, GAIN)], {"dev": "sts12/test"}, "WORSE", "on stsb test"),
        ([(ON_TEST, GAIN)], {"model": "after BSL + whitening"}, "NOT TESTED", "evaluation.sets"),
        ([(ON_TEST, NONE)], {"kept_start": True}, "NO DIFFERENCE", "encoder. Use the original encoder. Lower"),
    ]
)
def test_verdict_of_a_run_requires_a_relevant_difference_on_a_test_set(figures, options, word, said):
    found = run_verdict(figures, **options)
    assert found.word == word
    assert said in found.sentence


def judged(rows, max_forgetting=0.5, most_frequent=0):
    return adaptation_verdict(rows, max_forgetting, "proof.shares=[0.125]", most_frequent)


def row(role, difference, half=0.001, use=None, metric="Spearman"):
    spread = (difference, difference - half, difference + half, 0.01)
    use = "classify" if role == "decides" and use is None else use
    return AdaptationComparison("some set", metric, use, role, 0.5, 0.5 + difference, *spread, 200)


def search(difference, half=0.001, role="reported"):
    return row(role, difference, half, "search", "MRR")


GAINED, SAME, LOST, FORGOT = row("decides", 0.02), row("decides", 0.0), row("decides", -0.02), row("vetoes", -0.02)
MUCH, SEARCHED, GROUPED = row("decides", 0.08), search(-0.106), row("reported", 0.27, use="group")
SIMILAR = row("decides", 0.02, use="similarity")
# Regression: + 27.3 BETTER, while questions about the text fell from 17.6 to 7.0, "reported only".
WORSE_SEARCH = "worse for search in your text: MRR × 100 50.0 → 39.4"
GROUPS = "better for grouping and few examples (--for group), Spearman × 100 50.0 → 77.0"


@every(
    [
        ([GAINED, row("vetoes", -0.004)], "BETTER for classifying", "Use the adapted encoder for classifying"),
        ([GAINED, row("vetoes", -0.006, 0.02)], "WORSE for general text", "although its interval includes 0"),
        ([row("decides", 0.0005), row("vetoes", 0.02)], "NO DIFFERENCE for classifying", "More labels may show"),
        ([replace(SAME, before=1.0, after=1.0)], "NO DIFFERENCE for classifying", "original encoder, which has"),
        ([LOST], "WORSE for classifying", "label_training"),
        ([SIMILAR], "BETTER for similarity", "for similarity on text"),
        ([search(0.02, role="decides")], "BETTER for search in your text", "MRR × 100 50.0 → 52.0"),
        ([search(0.0, role="decides")], "NO DIFFERENCE for search in your text", "More text may show"),
        # Questions alone prove nothing: the widest interval says how many labels to give, 400 at least for the test.
        ([search(0.02), search(0.02, 0.05)], "NOT PROVED", "label about 2,600 rows (half are for the test)"),
        ([search(0.02), row("vetoes", 0.02)], "NOT PROVED", "--accept"),
        # Regression: numbers of classes of inference as scores, 0 for entailment, and BETTER.
        ([replace(SIMILAR, before=-0.34)], "NOT PROVED for similarity", "Are they distances"),
        ([replace(SIMILAR, before=-0.1)], "BETTER for similarity", "for similarity on text"),
        ([search(0.02), FORGOT], "WORSE for general text", "Train more gently"),
        # The significant loss of another use is in the sentence of every verdict.
        ([MUCH, SEARCHED], "BETTER for classifying", f"+8.00 [+7.90, +8.10], but {WORSE_SEARCH}"),
        ([SAME, SEARCHED], "NO DIFFERENCE for classifying", f"[-0.10, +0.10], but {WORSE_SEARCH}"),
        ([LOST, SEARCHED], "WORSE for classifying", f", and {WORSE_SEARCH}"),
        ([GAINED, FORGOT, SEARCHED], "WORSE for general text", f"allowed 0.5 points, and {WORSE_SEARCH}"),
        ([LOST, FORGOT, SEARCHED], "WORSE for general text", f"-2.00 [-2.10, -1.90] and {WORSE_SEARCH}"),
        ([SEARCHED], "NOT PROVED", f"a gain on labels, and the adapted encoder is {WORSE_SEARCH}"),
        # Advice names both encoders, or the use that gained although it does not decide.
        ([MUCH, SEARCHED], "BETTER for classifying", "and the original encoder for search in your text. A smaller"),
        ([MUCH, SEARCHED], "BETTER for classifying", "(--set proof.shares=[0.125]); --for lets another use decide"),
        ([SAME, GROUPED], "NO DIFFERENCE for classifying", GROUPS),
        ([LOST, GROUPED], "WORSE for classifying", GROUPS),
    ]
)
def test_verdict_of_an_adaptation(rows, headline, said):
    verdict = judged(rows)
    assert verdict.headline == headline
    assert said in verdict.finding
    assert verdict.reason in verdict.sentence
    assert ("You get the original encoder" in verdict.advice) is (verdict.word != "BETTER")


@every(
    [
        ([MUCH, search(-0.02, 0.021)], "worse"),
        ([row("decides", 0.0005), row("vetoes", -0.0062)], "max_forgetting"),
        ([GAINED, GROUPED], "--for group"),
    ]
)
def test_verdict_is_silent_about(rows, unsaid):
    assert unsaid not in judged(rows).finding


def test_verdict_without_labels_asks_for_no_more_rows_than_the_text_has():
    widest = search(0.02, 0.05)  # of 200 questions: the test half of 260 texts has 130
    advice = adaptation_verdict([widest], 0.5, "", texts=260).advice
    assert "label all 260 texts (half are for the test): they show a difference of 6.2 points" in advice
    assert "label about 2,600 rows" in adaptation_verdict([widest], 0.5, "", texts=TO_LABEL_ROWS).advice


def test_advice_names_max_forgetting_that_allows_the_loss():
    rows = [GAINED, row("vetoes", -0.0062)]
    found = re.search(r"\+2\.00 \[.*--set proof\.max_forgetting=([\d.]+)\.$", judged(rows).advice)
    assert found is not None
    assert judged(rows, float(found[1])).word == "BETTER"


@every([("decides", "classify"), ("reported", "group"), ("reported", "search"), ("vetoes", None)])
def test_advice_says_if_a_classifier_on_the_original_encoder_is_as_good(role, use):
    """Whatever decides; silent if the classifier gains or loses significantly, or was not tested."""
    said = "needs no adaptation: on 200 test rows, .* as good within noise .accuracy × 100 50.0, .* encoder's 50.2"
    others = [] if use == "classify" else [row("decides", 0.05, use="similarity"), row(role, -0.02, use=use)]
    for difference, half, is_same in [(0.002, 0.003, True), (0.002, 0.001, False), (-0.002, 0.001, False)]:
        own = row("decides" if use == "classify" else "reported", difference, half, "classify", "accuracy")
        assert bool(re.search(said, judged([*others, own]).advice)) == is_same
        assert bool(re.search(said, judged([*others, own], most_frequent=0.4).advice)) == is_same
        assert not re.search(said, judged([*others, own], most_frequent=0.45).advice)  # the classifier learned nothing
    assert "no adaptation" not in judged([row("decides", 0.0, use="similarity")]).advice
