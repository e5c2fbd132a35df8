"""A file of labels is an evaluation set of the kinds' table: classes and scored pairs, scores and bootstrap draws."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.labels import class_accuracies, labelled_of
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import SourceError
from bsl.tasks.evaluation.kinds import available, kind_of, names_of
from bsl.tasks.evaluation.python_api import evaluate
from bsl.tasks.stage.run_context import RunContext

DRAWN = BootstrapConfig(resamples=200)
RIVERS, ENGINES = ("river", "lake", "shore"), ("engine", "wheel", "brake")


def letters(texts):
    """Counts of letters: a real, if poor, encoder."""
    return np.array([[text.lower().count(letter) + 1e-3 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """Write sixty sentences of two classes, and three of a class that is too rare."""
    rows = [
        {"text": f"The {thing} of house {number} is old and rarely seen.", "topic": topic}
        for topic, things in (("water", RIVERS), ("machine", ENGINES), ("rare", ("moon",)))
        for number in range(10 if topic != "rare" else 3)
        for thing in things
    ]
    path = tmp_path_factory.mktemp("labels") / "topics.csv"
    pl.DataFrame(rows).write_csv(path)
    return f"labels:{path}"


def test_classes_have_two_accuracies_without_rare_classes(classes):
    assert names_of([classes, "stsb/dev"]) == (classes, "stsb/dev")
    assert kind_of(classes).is_drawn
    score, grouping = evaluate(letters, [classes], bootstrap=DRAWN).scores.rows(named=True)
    assert (score["metric"], score["split"]) == ("accuracy", "all")
    assert (grouping["metric"], grouping["split"]) == ("grouping accuracy", "grouping")
    assert score["n"] == grouping["n"] == 60
    rows = pl.read_csv(classes.removeprefix("labels:")).filter(pl.col("topic") != "rare").sort("text", "topic")
    labelled = labelled_of(rows.select(text_1="text", label="topic"), "classes")
    found = class_accuracies(letters(rows["text"]), labelled)
    assert score["value"] == pytest.approx(found.classifier.mean())
    assert grouping["value"] == pytest.approx(found.grouping.mean())
    assert score["ci_low"] <= score["value"] <= score["ci_high"]
    assert score["signature"].startswith(f"set:{classes}|metric:accuracy|protocol:all|data:")


def test_scoring_again_computes_no_accuracy_again(classes, monkeypatch):
    """`bsl evaluate A B` scores both encoders, and compares them on the same vectors."""
    first = evaluate(letters, [classes], bootstrap=DRAWN).scores
    monkeypatch.setattr("bsl.models.evaluation.labels.neighbour_accuracy", None)
    assert evaluate(letters, [classes], bootstrap=DRAWN).scores.equals(first)
    with pytest.raises(TypeError):
        evaluate(lambda texts: letters(texts) + 1, [classes], bootstrap=DRAWN)


def test_order_of_rows_changes_neither_score_nor_data_digest(classes, tmp_path):
    shuffled = tmp_path / "shuffled.csv"
    pl.read_csv(classes.removeprefix("labels:")).sample(fraction=1.0, shuffle=True, seed=1).write_csv(shuffled)
    one, other = (
        evaluate(letters, [name], bootstrap=DRAWN).scores.row(0, named=True) for name in (classes, f"labels:{shuffled}")
    )
    assert (one["value"], one["ci_low"]) == (other["value"], other["ci_low"])
    data = [score["signature"].split("|data:")[1] for score in (one, other)]
    assert data[0] == data[1]


def test_pairs_are_scored_by_spearman_and_systems_share_draws(tmp_path):
    pairs = pl.read_parquet(embedded_path("stsb") / "dev.parquet").head(100)
    path = tmp_path / "pairs.csv"
    pairs.select("sentence1", "sentence2", "score").write_csv(path)
    name = f"labels:{path}"
    score = evaluate(letters, [name], bootstrap=DRAWN).scores.row(0, named=True)
    assert (score["metric"], score["n"]) == ("spearman", 100)
    one, two = (letters(pairs[side]) for side in ("sentence1", "sentence2"))
    cosines = (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
    assert score["value"] == pytest.approx(spearmanr(cosines, pairs["score"]).statistic, abs=1e-5)


def test_too_few_rows_and_a_missing_file_are_refused(tmp_path):
    few = tmp_path / "few.csv"
    pl.DataFrame({"text": ["The river is wide.", "An engine is loud."] * 4, "label": ["a", "b"] * 4}).write_csv(few)
    with pytest.raises(EvaluationError, match="Label at least 10 rows of each class, or remove this set") as refused:
        available(RunContext(), [f"labels:{few}"])
    assert "held-out" not in str(refused.value)
    with pytest.raises(SourceError, match="no such file"):
        available(RunContext(), ["labels:nowhere.csv"])


def test_interval_over_writers_is_wider_than_over_rows(tmp_path):
    """Each writer scored a pair ten times alike: ten rows say hardly more than one."""
    pairs = pl.read_parquet(embedded_path("stsb") / "dev.parquet").head(20)
    number = pl.int_range(200)
    repeated = pl.concat([pairs] * 10).with_columns(
        sentence1=pl.format("{} ({})", "sentence1", number), writer=pl.format("w{}", number % 20)
    )
    path = tmp_path / "pairs.csv"
    repeated.select("sentence1", "sentence2", "score", "writer").write_csv(path)
    rows, groups = (
        evaluate(letters, [name], bootstrap=DRAWN).scores.row(0, named=True)
        for name in (f"labels:{path}", f"labels:{path}#document=writer")
    )
    assert rows["value"] == groups["value"]
    assert groups["ci_high"] - groups["ci_low"] > 2 * (rows["ci_high"] - rows["ci_low"])


def test_interval_of_accuracy_draws_writers(classes, tmp_path):
    path = tmp_path / "topics.csv"
    table = pl.read_csv(classes.removeprefix("labels:"))
    table.with_columns(writer=pl.format("w{}", pl.int_range(pl.len()) // 6)).write_csv(path)
    rows, groups = (
        evaluate(letters, [name], bootstrap=DRAWN).scores.filter(metric="grouping accuracy").row(0, named=True)
        for name in (f"labels:{path}", f"labels:{path}#document=writer")
    )
    assert rows["value"] == pytest.approx(groups["value"], abs=0.02)  # neighbours and centroids are of other writers
    assert rows["ci_low"] != groups["ci_low"]
