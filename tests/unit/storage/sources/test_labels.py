"""Somebody's labels: pairs with a score, or classes."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import polars as pl
import pytest

from storage.errors import SourceError
from storage.sources.labels import label_source, read_labels

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [f"A text of some words, number {n}." for n in range(12)]


def test_two_text_columns_and_a_number_are_scored_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    pl.DataFrame({"id": range(12), "left": TEXTS, "right": TEXTS[::-1], "Score": [n / 3 for n in range(12)]}).write_csv(
        path
    )
    source = label_source(str(path))
    assert (source.kind, source.texts, source.label) == ("pairs", ("left", "right"), "Score")
    assert read_labels(source).row(3) == (TEXTS[3], TEXTS[8], "1.0")
    assert "`left` and `right`" in source.summary


def test_text_and_label_columns_are_classes_without_unlabelled_rows(tmp_path: Path) -> None:
    path = tmp_path / "classes.jsonl"
    rows = pl.DataFrame({"text": TEXTS, "label": [None, *"xyxyxyxyxyx"]})
    rows.write_ndjson(path)
    source = label_source(str(path))
    assert (source.kind, source.texts, source.label) == ("classes", ("text",), "label")
    read = read_labels(source)
    assert read.height == 11
    assert read.row(0) == (TEXTS[1], None, "x")


def test_labels_file_without_labels_raises_source_error(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    pl.DataFrame({"text": TEXTS}).write_csv(path)
    with pytest.raises(SourceError, match="expected two text columns and a number"):
        label_source(str(path))


def test_pairs_with_repeated_answers_have_two_text_columns(tmp_path: Path) -> None:
    question = [f"How long does delivery number {n} take?" for n in range(300)]
    answer = [f"A delivery of size {n % 15} takes some days." for n in range(300)]
    rows = pl.DataFrame({"question": question, "answer": answer, "score": [n % 5 for n in range(300)]})
    for own in (rows, rows.rename({"question": "answer", "answer": "question"})):
        assert label_source(_written(own, tmp_path / "pairs.csv")).kind == "pairs"


def test_multi_word_class_names_are_not_a_text_column(tmp_path: Path) -> None:
    texts = [f"How long does delivery number {n} take?" for n in range(300)]
    classes = ["a question of when it comes", "a question of how much it is"] * 150
    source = label_source(_written(pl.DataFrame({"text": texts, "topic": classes}), tmp_path / "classes.csv"))
    assert (source.kind, source.texts, source.label) == ("classes", ("text",), "topic")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_blank_labels_are_excluded_in_every_format(tmp_path: Path, suffix: str) -> None:
    rows = pl.DataFrame({"text": [*TEXTS, None], "label": [None, " ", *"xyxyxyxyxy", "x"]})
    source = label_source(_written(rows, tmp_path / f"classes.{suffix}"))
    read = read_labels(source)
    assert read["label"].to_list() == list("xyxyxyxyxy")
    assert source.summary.endswith("class in `label`; 3 rows without text or label are excluded")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_pairs_without_a_score_or_text_are_excluded(tmp_path: Path, suffix: str) -> None:
    scores = [None, *(n / 3 for n in range(1, 12))]
    rows = pl.DataFrame({"a": TEXTS, "b": [*TEXTS[:11], None], "score": scores})
    source = label_source(_written(rows, tmp_path / f"pairs.{suffix}"))
    assert (source.kind, source.left_out) == ("pairs", 2)
    assert read_labels(source)["text_2"].to_list() == TEXTS[1:11]


def test_non_numeric_score_raises_source_error(tmp_path: Path) -> None:
    rows = pl.DataFrame({"a": TEXTS, "b": TEXTS, "score": ["45%", *map(str, range(11))]})
    with pytest.raises(
        SourceError, match=r"'score' contains '45%', which is not a number\), expected two text columns and a number"
    ):
        label_source(_written(rows, tmp_path / "pairs.csv"))


@pytest.mark.parametrize("title", ["title", "Summary", "headline"])
@pytest.mark.parametrize("label", ["label", "Rating", "stars"])
def test_title_column_does_not_pair_with_the_text_column(tmp_path: Path, title: str, label: str) -> None:
    rows = pl.DataFrame({title: TEXTS[::-1], "Text": TEXTS, label: [n % 4 for n in range(12)]})
    source = label_source(_written(rows, tmp_path / "news.csv"))
    assert (source.kind, source.texts, source.label) == ("classes", ("Text",), label)


def test_more_than_100_classes_raise_source_error(tmp_path: Path) -> None:
    texts = [f"How long does delivery number {n} take?" for n in range(300)]
    rows = pl.DataFrame({"text": texts, "label": [str(n // 2) for n in range(300)]})
    with pytest.raises(SourceError, match=r"'label' has 150 different values\), expected .* 2 to 100 classes"):
        label_source(_written(rows, tmp_path / "intents.csv"))


def test_known_column_name_marks_short_strings_as_text(tmp_path: Path) -> None:
    rows = pl.DataFrame({"text": [f"refund {n}" for n in range(12)], "intent": list("xyz" * 4)})
    source = label_source(_written(rows, tmp_path / "intents.csv"))
    assert (source.kind, source.texts, source.label) == ("classes", ("text",), "intent")
    pairs = pl.DataFrame({"sentence1": list("abcdefghijkl"), "sentence2": list("bcdefghijkla"), "score": range(12)})
    assert label_source(_written(pairs, tmp_path / "pairs.csv")).kind == "pairs"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_nan_label_is_excluded(tmp_path: Path, suffix: str) -> None:
    rows = pl.DataFrame({"text": TEXTS, "label": [float("nan"), *(float(n % 2) for n in range(11))]})
    path = tmp_path / f"classes.{suffix}"
    if suffix == "jsonl":  # as Python's json writes it
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_dicts()))
        source = label_source(str(path))
    else:
        source = label_source(_written(rows, path))
    assert source.left_out == 1
    assert {float(label) for label in read_labels(source)["label"]} == {0, 1}


@pytest.mark.parametrize("nothing", ["None", "NULL", "null", "N/A", "n/a", "NA", "<NA>", "nan", "inf", "-INF", " "])
def test_null_markers_are_excluded_from_the_classes(tmp_path: Path, nothing: str) -> None:
    rows = pl.DataFrame({"text": TEXTS, "label": [nothing, *"xyxyxyxyxyx"]})
    source = label_source(_written(rows, tmp_path / "classes.csv"))
    assert source.left_out == 1
    assert set(read_labels(source)["label"]) == {"x", "y"}


def test_lowercase_none_is_a_valid_class(tmp_path: Path) -> None:
    rows = pl.DataFrame({"text": TEXTS, "intent": ["none", "refund"] * 6})
    assert label_source(_written(rows, tmp_path / "intents.csv")).left_out == 0


@pytest.mark.parametrize("score", ["inf", "-inf", "99999999999999999999999999", "-1e7"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_out_of_range_score_error_names_the_row(tmp_path: Path, score: str, suffix: str) -> None:
    first = f"{TEXTS[0]} Of two lines,\nand information about inf."
    rows = pl.DataFrame({"a": [first, *TEXTS[1:]], "b": TEXTS, "score": ["", *"1234", score, *"123456"]})
    path = _written(rows, tmp_path / f"pairs.{suffix}")
    said = f"pairs.{suffix}: row 6 has the score '{score}' in column 'score', expected a finite similarity within"
    with pytest.raises(SourceError, match=said):
        label_source(path)


def test_labels_csv_without_a_header_row_raises_source_error(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("".join(f'{n},"{text}",{n % 2 + 5}\n' for n, text in enumerate(TEXTS)))
    with pytest.raises(SourceError, match="line 1 should be a header, but '0' is a number"):
        label_source(str(path))


def test_malformed_labels_csv_error_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(pl.DataFrame({"text": TEXTS, "label": list("xy" * 6)}).write_csv() + "one field\n")
    with pytest.raises(SourceError, match="line 14: 1 fields, expected 2"):
        label_source(str(path))


def test_label_detection_ignores_columns_of_other_types(tmp_path: Path) -> None:
    days = [date(2026, 1, 1)] * 12
    rows = pl.DataFrame({"text": TEXTS, "label": list("xy" * 6), "day": days, "tags": [["a"]] * 12, "raw": [b"x"] * 12})
    assert label_source(_written(rows, tmp_path / "classes.parquet")).texts == ("text",)


def _written(rows: pl.DataFrame, path: Path) -> str:
    match path.suffix:
        case ".csv":
            rows.write_csv(path)
        case ".tsv":
            rows.write_csv(path, separator="\t")
        case ".jsonl":
            rows.write_ndjson(path)
        case _:
            rows.write_parquet(path)
    return str(path)
