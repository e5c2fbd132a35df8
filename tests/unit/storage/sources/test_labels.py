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
QUESTIONS = [f"How long does delivery number {n} take?" for n in range(300)]
ANSWERS = [f"A delivery of size {n % 15} takes some days." for n in range(300)]
TOPICS = ["a question of when it comes", "a question of how much it is"] * 150


def titled(title: str, label: str) -> dict[str, list[object]]:
    return {title: TEXTS[::-1], "Text": TEXTS, label: [n % 4 for n in range(12)]}


GUESSES: dict[str, tuple[dict[str, object], tuple[str, tuple[str, ...], str]]] = {
    "repeated answers": (
        {"question": QUESTIONS, "answer": ANSWERS, "score": range(300)}, ("pairs", ("question", "answer"), "score"),
    ),
    "repeated questions": (
        {"question": ANSWERS, "answer": QUESTIONS, "score": range(300)}, ("pairs", ("question", "answer"), "score"),
    ),
    "several words a class": ({"text": QUESTIONS, "topic": TOPICS}, ("classes", ("text",), "topic")),
    **{
        f"{title} and {label}": (titled(title, label), ("classes", ("Text",), label))
        for title in ("title", "Summary", "headline") for label in ("label", "Rating", "stars")
    },
    "short texts": (
        {"text": [f"refund {n}" for n in range(12)], "intent": list("xyz" * 4)}, ("classes", ("text",), "intent"),
    ),
    "short pairs": (
        {"sentence1": list("abcdefghijkl"), "sentence2": list("bcdefghijkla"), "score": range(12)},
        ("pairs", ("sentence1", "sentence2"), "score"),
    ),
    "the class `none`": ({"text": TEXTS, "intent": ["none", "refund"] * 6}, ("classes", ("text",), "intent")),
    "columns of other types": (
        {"text": TEXTS, "label": list("xy" * 6), "day": [date(2026, 1, 1)] * 12, "tags": [["a"]] * 12,
         "raw": [b"x"] * 12},
        ("classes", ("text",), "label"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "guess"), GUESSES.values(), ids=GUESSES)
def test_label_columns_are_guessed(tmp_path: Path, columns: dict[str, object], guess: tuple[object, ...]) -> None:
    source = label_source(_written(pl.DataFrame(columns), tmp_path / "labels.parquet"))
    assert (source.kind, source.texts, source.label) == guess
    assert source.left_out == 0


NO_LABELS = {
    "text alone": (pl.DataFrame({"text": TEXTS}).write_csv(), "expected two text columns and a number"),
    "a score with a sign": (
        pl.DataFrame({"a": TEXTS, "b": TEXTS, "score": ["45%", *map(str, range(11))]}).write_csv(),
        r"'score' contains '45%', which is not a number\), expected two text columns and a number",
    ),
    "150 classes": (
        pl.DataFrame({"text": QUESTIONS, "label": [n // 2 for n in range(300)]}).write_csv(),
        r"'label' has 150 different values\), expected .* 2 to 100 classes",
    ),
    "no header": (
        "".join(f'{n},"{text}",{n % 2 + 5}\n' for n, text in enumerate(TEXTS)),
        "line 1 should be a header, but '0' is a number",
    ),
    "a bad line": (
        pl.DataFrame({"text": TEXTS, "label": list("xy" * 6)}).write_csv() + "one field\n",
        "line 14: 1 fields, expected 2",
    ),
}


@pytest.mark.parametrize(("content", "why"), NO_LABELS.values(), ids=NO_LABELS)
def test_csv_without_usable_labels_raises_source_error(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(SourceError, match=why):
        label_source(str(tmp_path / "labels.csv"))


def test_table_of_other_types_alone_has_no_labels(tmp_path: Path) -> None:
    pl.DataFrame({"tokens": [["a", "b"], ["c"]]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="no labels found in the columns 'tokens'"):
        label_source(str(tmp_path / "a.parquet"))


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


@pytest.mark.parametrize("score", ["inf", "-inf", "99999999999999999999999999", "-1e7"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_out_of_range_score_error_names_the_row(tmp_path: Path, score: str, suffix: str) -> None:
    first = f"{TEXTS[0]} Of two lines,\nand information about inf."
    rows = pl.DataFrame({"a": [first, *TEXTS[1:]], "b": TEXTS, "score": ["", *"1234", score, *"123456"]})
    path = _written(rows, tmp_path / f"pairs.{suffix}")
    said = f"pairs.{suffix}: row 6 has the score '{score}' in column 'score', expected a finite similarity within"
    with pytest.raises(SourceError, match=said):
        label_source(path)


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
