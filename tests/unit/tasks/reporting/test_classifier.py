"""The section on a classifier: the sentence, confusions, and code that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bsl.storage.assets.embedded import embedded_path
from bsl.storage.sources.labels import label_source
from bsl.tasks.figures import ClassifierFigures
from bsl.tasks.rendering.blocks import Page
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting.classifier import classifier_part, confusion_table, scikit_learn
from tests.classified import classified, texts_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_section_shows_accuracy_baseline_classes_and_commands(tmp_path: Path) -> None:
    made = classified(tmp_path)
    store = made.site.open_store()
    assert made.held_out.labels is not None
    figures, confusion = store.manifest(made.classifier).figures_as(ClassifierFigures), store.scan(made.classifier)
    labels = made.held_out.labels
    part = classifier_part(figures, confusion.collect(), labels, "path/to/encoder", "report/1234")
    page = markdown(Page("An adaptation", "", "", [], [part]))
    accuracy = 100 * figures.accuracy
    assert f"is right on {accuracy:.1f} % of {figures.test_rows} test rows" in page
    most = store.scan(made.classifier).collect().group_by("label").agg(pl.col("rows").sum())["rows"]
    alone = f"The most frequent class alone: {100 * int(most.max()) / int(most.sum()):.1f} %."  # type: ignore[arg-type]
    assert f"on the original encoder's vectors on {accuracy:.1f} %. {alone}" in page
    assert "bsl classify report/1234 new.csv out.csv" in page
    assert "| account |" in page
    assert "rows = pl.read_csv('tickets.csv').drop_nulls(" in page


def test_lines_of_scikit_learn_run_and_find_the_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for suffix in ("csv", "jsonl", "parquet", "tsv"):
        rows, path = texts_of(0, 60), tmp_path / f"tickets.{suffix}"
        {
            "csv": rows.write_csv, "jsonl": rows.write_ndjson, "parquet": rows.write_parquet,
            "tsv": lambda target, rows=rows: rows.write_csv(target, separator="\t"),
        }[suffix](path)  # fmt: skip
        labels = label_source(f"{path}#label=queue")
        code = scikit_learn(labels, str(embedded_path("mini-sentence")), 8.0)
        exec(code.replace("a new text", texts_of(100, 1)["body"][0]), {})
        assert texts_of(100, 1)["queue"][0] in capsys.readouterr().out


def test_many_classes_are_a_list_of_confusions() -> None:
    names = [f"class {n:02}" for n in range(15)]
    confusion = pl.DataFrame({"label": names, "predicted": [*names[1:], names[0]], "rows": range(1, 16)})
    table = confusion_table(confusion)
    assert table.rows[0].cells == ["class 14", "class 00", "15"]
    small = confusion_table(pl.DataFrame({"label": ["a", "b"], "predicted": ["b", "b"], "rows": [2, 3]}))
    assert [row.cells for row in small.rows] == [["a", "0", "2"], ["b", "0", "3"]]
