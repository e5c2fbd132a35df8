"""The study on own text: nothing held out is trained on, equal steps, corrected p, a failed point is named."""

import polars as pl
import pytest

from bsl.flows.own_options import OwnRequest
from bsl.flows.sweep.own import START
from bsl.flows.sweep.sweep import ablation
from bsl.models.corpus.labels import sentences_of
from bsl.storage.artifacts.refs import ArtifactRef, PassagesRef
from bsl.storage.sources.labels import label_source
from bsl.tasks.corpus.labels import labelled_rows

pytestmark = pytest.mark.usefixtures("without_charts")

WORDS = ("river", "engine", "garden", "market", "window", "teacher", "winter", "bottle", "camera", "letter")
POINTS = ["crops", "TSDAE", "your labels"]
SETS = {"sets": ["stsb/test"], "dev": "stsb/dev"}
CHANGES = {"training": {"max_steps": 2, "batch_size": 16}, "evaluation": {**SETS, "bootstrap": {"resamples": 200}}}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Reviews of two classes, each a document."""
    rows = [
        {"text": f"The {a} beside the {b} was {word} on day {number}.", "label": word}
        for number, (a, b) in enumerate((a, b) for a in WORDS for b in WORDS for _ in range(3))
        for word in [("good", "bad")[number % 2]]
    ]
    path = tmp_path_factory.mktemp("text") / "reviews.csv"
    pl.DataFrame(rows).write_csv(path)
    return str(path)


@pytest.fixture(scope="module")
def site(few_stsb_rows):
    return few_stsb_rows


@pytest.fixture(scope="module")
def sweep(site, text, shallow):

    def call(points, changes=CHANGES, *, labels=text):  # outside of Prefect, where test_sweep.py runs a sweep
        own = OwnRequest(text=(text,), labels=labels, encoder=str(shallow))
        return ablation.fn("own", {"variant": points}, 1, changes, site=site, own=own)

    return call


@pytest.fixture(scope="module")
def swept(sweep):
    return sweep(POINTS)


def inputs_of(store, ref):
    return {
        name: ArtifactRef(kind=entry.kind, key=entry.key)
        for name, entry in store.manifest(ref).provenance.inputs.items()
    }


def test_study_scores_every_point_on_text_labels_and_stsb(store, swept):
    table = store.scan(swept).collect()
    assert table["dataset"].unique(maintain_order=True).to_list() == [
        "your text crop", "your labels", "your labels grouping", "stsb test",
    ]  # fmt: skip
    assert table["label"].to_list() == [START, *POINTS] * 4
    assert table.filter("decides")["dataset"].unique().to_list() == ["your labels"]
    manifest = store.manifest(swept)
    (advice,) = manifest.figures["findings"]
    assert advice.startswith(("Use ", "Keep the original encoder: "))
    assert "your labels" in advice


def test_no_held_out_sentence_and_no_test_label_is_trained_on(store, swept, text):
    inputs = inputs_of(store, swept)
    passages = PassagesRef(key=inputs["own_text.passages"].key)
    held_out = store.scan(passages).filter(pl.col("part") != "train").collect()["text"]
    rows = labelled_rows(store, passages, label_source(text), use="adapt").filter(part="judge")
    tested = sentences_of(pl.concat([held_out, rows["text_1"].alias("text")]))
    assert len(tested) > held_out.n_unique() > 50
    pairs = [store.scan(ref).collect() for ref in store.refs("pairs")]
    assert len(pairs) == len(POINTS)
    learnt = [sentences_of(store.scan(inputs["own_text.corpus"]).collect()["text"])]
    for table in pairs:
        scored = table.drop_nulls("score")  # without the general sentences, which have no score
        used = scored if scored.height else table
        learnt.append(sentences_of(pl.concat([used["text_1"], used["text_2"].rename("text_1")])))
    for sentences in learnt:
        assert len(sentences) > 50
        assert not sentences.is_in(tested.implode()).any()


def test_every_point_trains_for_the_same_steps_and_p_values_are_corrected_over_all(store, swept):
    reports = [ref for name, ref in inputs_of(store, swept).items() if name.startswith("own_text.reports.")]
    inputs = [inputs_of(store, report) for report in reports]
    trained = {ref for of_report in inputs for name, ref in of_report.items() if name.startswith("checkpoints.")}
    assert [store.manifest(ref).figures["steps"] for ref in trained] == [2] * len(POINTS)
    p_values = store.scan(swept).filter(dataset="stsb test").collect()["p_value"].drop_nulls()
    draws = 80 * len(POINTS)
    assert (len(p_values), len(reports)) == (len(POINTS), 1 + len(POINTS))
    assert p_values.min() == pytest.approx(2 * len(POINTS) / (draws + 1)), "the smallest p, three times"


def test_failed_point_is_named_and_the_others_have_figures(store, sweep):
    large = {**CHANGES, "training": {"max_steps": 2, "batch_size": 400}}  # more than the pairs of crops
    swept = sweep(["crops", "your labels"], large)
    table = store.scan(swept).filter(dataset="your labels").collect()
    assert dict(table.select("label", "seeds").rows()) == {START: 1, "crops": 0, "your labels": 1}
    assert list(store.manifest(swept).figures["faults"]) == ["crops"]


def test_without_labels_questions_about_crops_do_not_decide_for_crops(store, sweep):
    swept = sweep(["TSDAE"], labels=None)
    table = store.scan(swept).collect()
    assert table.filter("decides")["dataset"].unique().to_list() == ["your text crop"]
    assert any(note.startswith("crops: not tried") for note in store.manifest(swept).figures["notes"])
