"""Somebody's labels: pairs with a score, or classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from storage.errors import SourceError
from storage.labels import label_source, read_labels

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [f"A text of some words, number {n}." for n in range(12)]


def test_two_texts_and_a_number_are_scored_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    pl.DataFrame({"id": range(12), "left": TEXTS, "right": TEXTS[::-1], "Score": [n / 3 for n in range(12)]}).write_csv(
        path
    )
    source = label_source(str(path))
    assert (source.kind, source.texts, source.label) == ("pairs", ("left", "right"), "Score")
    assert read_labels(source).row(3) == (TEXTS[3], TEXTS[8], "1.0")
    assert "`left` and `right`" in source.told


def test_one_text_and_a_class_are_classes_and_unlabelled_rows_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "classes.jsonl"
    rows = pl.DataFrame({"text": TEXTS, "label": [None, *"xyxyxyxyxyx"]})
    rows.write_ndjson(path)
    source = label_source(str(path))
    assert (source.kind, source.texts, source.label) == ("classes", ("text",), "label")
    read = read_labels(source)
    assert read.height == 11
    assert read.row(0) == (TEXTS[1], None, "x")


def test_anything_else_is_refused_with_what_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    pl.DataFrame({"text": TEXTS}).write_csv(path)
    with pytest.raises(SourceError, match="expected two of text and a number"):
        label_source(str(path))
