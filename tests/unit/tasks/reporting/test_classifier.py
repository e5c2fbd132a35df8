"""The section on a classifier: confusions, and code that runs."""

import polars as pl
import pytest

from bsl.storage.assets.embedded import embedded_path
from bsl.storage.sources.labels import label_source
from bsl.tasks.figures import ClassifierFigures
from bsl.tasks.reporting.classifier import classifier_summary, confusion_table, scikit_learn
from bsl.tasks.serving.classify import write_table
from tests.classified import texts_of


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "tsv"])
def test_lines_of_scikit_learn_run_and_find_the_classes(tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.chdir(tmp_path)
    path, new = tmp_path / f"tickets.{suffix}", texts_of(100, 1)
    write_table(texts_of(0, 60), path)
    code = scikit_learn(label_source(f"{path}#label=queue"), str(embedded_path("mini-sentence")), 8.0)
    exec(code.replace("a new text", new["body"][0]), {})
    assert new["queue"][0] in capsys.readouterr().out


def test_many_classes_are_a_list_of_confusions():
    names = [f"class {n:02}" for n in range(15)]
    confusion = pl.DataFrame({"label": names, "predicted": [*names[1:], names[0]], "rows": range(1, 16)})
    assert confusion_table(confusion).rows[0].cells == ["class 14", "class 00", "15"]
    small = confusion_table(pl.DataFrame({"label": ["a", "b"], "predicted": ["b", "b"], "rows": [2, 3]}))
    assert [row.cells for row in small.rows] == [["a", "0", "2"], ["b", "0", "3"]]


# Regression: labels dealt at random, whose classifier is right on 18.1 %, and advice that it needs no adaptation
@pytest.mark.parametrize(
    ("accuracy", "majority", "rows", "warned"),
    [(0.181, 0.26, 315, True), (0.32, 0.28, 300, True), (0.32, 0.28, 3000, False), (0.9, 0.26, 30, False)],
)
def test_classifier_no_better_than_the_most_frequent_class_is_named(accuracy, majority, rows, warned):
    figures = ClassifierFigures(
        accuracy=accuracy, original_accuracy=accuracy, majority_accuracy=majority, test_rows=rows,
        training_rows=rows, strength=1.0, temperature=1.0, rows=2 * rows,
    )  # fmt: skip
    assert ("no better than that: label more rows" in classifier_summary(figures)) == warned
