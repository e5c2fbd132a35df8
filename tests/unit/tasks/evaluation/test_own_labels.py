"""A file of labels is an evaluation set of the kinds' table: classes and scored pairs, scores and bootstrap draws."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from models.errors import EvaluationError
from models.evaluation.config import BootstrapConfig
from models.evaluation.labels import class_accuracy, labelled_of
from storage.assets.embedded import embedded_path
from storage.errors import SourceError
from tasks.evaluation.kinds import available, kind_of, names_of
from tasks.evaluation.python_api import evaluate
from tasks.stage.run_context import RunContext

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


def test_classes_are_scored_by_the_mean_of_three_accuracies_without_rare_classes(classes):
    assert names_of([classes, "stsb/dev"]) == (classes, "stsb/dev")
    assert kind_of(classes).is_drawn
    score = evaluate(letters, [classes], bootstrap=DRAWN).scores.row(0, named=True)
    assert score["metric"] == "accuracy"
    assert score["n"] == 60
    rows = pl.read_csv(classes.removeprefix("labels:")).filter(pl.col("topic") != "rare").sort("text", "topic")
    labelled = labelled_of(rows.select(text_1="text", label="topic"), "classes")
    assert score["value"] == pytest.approx(class_accuracy(letters(rows["text"]), labelled).mean())
    assert score["ci_low"] <= score["value"] <= score["ci_high"]
    assert score["signature"].startswith(f"set:{classes}|metric:accuracy|protocol:all|data:")


def test_scoring_again_computes_no_accuracy_again(classes, monkeypatch):
    """`bsl evaluate A B` scores both encoders, and compares them on the same vectors."""
    first = evaluate(letters, [classes], bootstrap=DRAWN).scores
    monkeypatch.setattr("models.evaluation.labels.neighbour_accuracy", None)
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
