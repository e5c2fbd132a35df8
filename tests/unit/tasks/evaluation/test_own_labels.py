"""A file of labels is an evaluation set of the kinds' table: classes and scored pairs, scores and bootstrap draws."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
from bsl.models.evaluation.labels import class_accuracies, labelled_of
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.evaluation.kinds import available, kind_of, names_of
from bsl.tasks.evaluation.python_api import evaluate
from bsl.tasks.stage.run_context import RunContext

DRAWN = ScoringConfig(bootstrap=BootstrapConfig(resamples=200))
RIVERS, ENGINES = ("river", "lake", "shore"), ("engine", "wheel", "brake")


def letters(texts):
    """Counts of letters: a real, if poor, encoder."""
    return np.array([[text.lower().count(letter) + 1e-3 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """Write sixty sentences of two classes, and three of a class that is too rare; each writer has six."""
    rows = [
        {"text": f"The {thing} of house {number} is old and rarely seen.", "topic": topic}
        for topic, things in (("water", RIVERS), ("machine", ENGINES), ("rare", ("moon",)))
        for number in range(10 if topic != "rare" else 3)
        for thing in things
    ]
    path = tmp_path_factory.mktemp("labels") / "topics.csv"
    pl.DataFrame(rows).with_columns(writer=pl.format("w{}", pl.int_range(pl.len()) // 6)).write_csv(path)
    return path


def scores_of(path, options="#label=topic&text=text"):
    return evaluate(letters, [f"labels:{path}{options}"], RunContext(), DRAWN).scores


def width(row):
    return row["ci_high"] - row["ci_low"]


def test_classes_have_two_accuracies_without_rare_classes(classes):
    name = f"labels:{classes}#label=topic&text=text"
    assert names_of([name, "stsb/dev"]) == (name, "stsb/dev")
    assert kind_of(name).is_drawn
    score, grouping = scores_of(classes).rows(named=True)
    assert (score["metric"], score["split"]) == ("accuracy", "all")
    assert (grouping["metric"], grouping["split"]) == ("grouping accuracy", "grouping")
    assert score["n"] == grouping["n"] == 60
    rows = pl.read_csv(classes).filter(pl.col("topic") != "rare").sort("text", "topic")
    found = class_accuracies(letters(rows["text"]), labelled_of(rows.select(text_1="text", label="topic"), "classes"))
    assert score["value"] == pytest.approx(found.classifier.mean())
    assert grouping["value"] == pytest.approx(found.grouping.mean())
    assert score["ci_low"] <= score["value"] <= score["ci_high"]
    assert score["signature"].startswith(f"set:{name}|metric:accuracy|protocol:all|data:")


def test_scoring_again_computes_no_accuracy_again(classes, monkeypatch):
    """`bsl evaluate A B` scores both encoders, and compares them on the same vectors."""
    first = scores_of(classes)
    monkeypatch.setattr("bsl.models.evaluation.labels.neighbour_accuracy", None)
    assert scores_of(classes).equals(first)
    with pytest.raises(TypeError):
        evaluate(lambda texts: letters(texts) + 1, [f"labels:{classes}#label=topic"], RunContext(), DRAWN)


def test_order_of_rows_changes_neither_score_nor_data_digest(classes, tmp_path):
    pl.read_csv(classes).sample(fraction=1.0, shuffle=True, seed=1).write_csv(tmp_path / "shuffled.csv")
    one, other = (scores_of(path).row(0, named=True) for path in (classes, tmp_path / "shuffled.csv"))
    assert (one["value"], one["ci_low"]) == (other["value"], other["ci_low"])
    assert one["signature"].split("|data:")[1] == other["signature"].split("|data:")[1]


def test_pairs_are_scored_by_spearman_and_intervals_draw_writers(tmp_path):
    """Each writer scored a pair ten times alike: ten rows say hardly more than one."""
    number, path = pl.int_range(200), tmp_path / "pairs.csv"
    pairs = pl.concat([pl.read_parquet(embedded_path("stsb") / "dev.parquet").head(20)] * 10).with_columns(
        sentence1=pl.format("{} ({})", "sentence1", number), writer=pl.format("w{}", number % 20)
    )
    pairs.select("sentence1", "sentence2", "score", "writer").write_csv(path)
    rows, groups = (scores_of(path, options).row(0, named=True) for options in ("", "#document=writer"))
    assert (rows["metric"], rows["n"]) == ("spearman", 200)
    one, two = (letters(pairs[side]) for side in ("sentence1", "sentence2"))
    cosines = (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
    assert rows["value"] == pytest.approx(spearmanr(cosines, pairs["score"]).statistic, abs=1e-5)
    assert rows["value"] == groups["value"]
    assert width(groups) > 2 * width(rows)
    told = rf"^labels:{path} \(first scores = yours, second = cosine\): all 200 values of the second scores"
    with pytest.raises(EvaluationError, match=told):
        evaluate(lambda texts: np.ones((len(texts), 2)), [f"labels:{path}"], RunContext(), DRAWN)


@pytest.mark.parametrize("document", [{}, {"writer": ["w"]}])
def test_ratings_of_one_pair_by_several_people_are_drawn_together(tmp_path, document):
    """Regression: ten copies of each row gave an interval of a third of the width."""
    pairs = pl.read_parquet(embedded_path("stsb") / "dev.parquet").head(60).select("sentence1", "sentence2", "score")
    once, often = tmp_path / "once.csv", tmp_path / "often.csv"
    pairs.write_csv(once)
    turned = pairs.select(sentence1="sentence2", sentence2="sentence1", score="score")
    pl.concat([*[pairs] * 5, *[turned] * 5]).with_columns(
        **{name: pl.int_range(pl.len()).cast(pl.String) for name in document}
    ).write_csv(often)
    options = "#document=writer" if document else ""
    rows, ratings = scores_of(once, "").row(0, named=True), scores_of(often, options).row(0, named=True)
    assert ratings["value"] == pytest.approx(rows["value"], abs=1e-6)
    assert width(ratings) == pytest.approx(width(rows), rel=0.3)


def test_interval_of_accuracy_draws_writers(classes):
    rows, groups = (
        scores_of(classes, f"#label=topic&text=text{options}").row(1, named=True)
        for options in ("", "&document=writer")
    )
    assert rows["value"] == pytest.approx(groups["value"], abs=0.02)  # neighbours and centroids are of other writers
    assert rows["ci_low"] != groups["ci_low"]


def test_too_few_rows_are_refused(tmp_path):
    few = tmp_path / "few.csv"
    pl.DataFrame({"text": ["The river is wide.", "An engine is loud."] * 4, "label": ["a", "b"] * 4}).write_csv(few)
    with pytest.raises(EvaluationError, match="Label at least 10 different texts of each class, or") as refused:
        available(RunContext(), [f"labels:{few}"])
    assert "held-out" not in str(refused.value)
