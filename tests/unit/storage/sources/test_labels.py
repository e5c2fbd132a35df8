"""Somebody's labels: pairs with a score, or classes."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.label_names import LabelFile, label_file, with_label_columns
from bsl.storage.sources.labels import label_source, read_labels

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
    "names of the classes": (
        {"text": TEXTS, "label": [0, 1] * 6, "label_text": ["of when it comes", "of how much it is"] * 6},
        ("classes", ("text",), "label"),
    ),
    "names of three classes": (
        {"label_text": ["a question of when", "about how much it is", "about how much it is"] * 4,
         "text": TEXTS, "label": [0, 1, 2] * 4},
        ("classes", ("text",), "label"),
    ),
    "yes and no": (
        {"question1": TEXTS, "question2": TEXTS[::-1], "is_duplicate": ["yes", "no"] * 6},
        ("pairs", ("question1", "question2"), "is_duplicate"),
    ),
    "an empty label": (
        {"text": TEXTS, "label": [None] * 12, "category": ["a", "b"] * 6}, ("classes", ("text",), "category"),
    ),
    "classes NA and None": ({"text": TEXTS, "label": ["NA", "None"] * 6}, ("classes", ("text",), "label")),
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
    assert source.left_out == 3


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
def test_null_marker_of_a_single_row_is_no_class(tmp_path: Path, nothing: str) -> None:
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


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_equal_numbers_are_one_class_as_written_first(tmp_path: Path, suffix: str) -> None:
    rows = pl.DataFrame({"text": TEXTS, "label": ["1", "1.0", "2", "2.50"] * 3})
    read = read_labels(label_source(_written(rows, tmp_path / f"classes.{suffix}")))
    assert read["label"].to_list() == ["1", "1", "2", "2.50"] * 3


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_words_for_missing_values_are_classes_among_words_and_missing_among_numbers(
    tmp_path: Path, suffix: str
) -> None:
    rows = pl.DataFrame({"text": TEXTS, "region": ["NA", "EU", None] * 4, "stars": ["NA", "1", "2"] * 4})
    path = _written(rows, tmp_path / f"rows.{suffix}")
    regions, stars = (label_source(f"{path}#label={label}") for label in ("region", "stars"))
    assert (regions.classes, regions.left_out, regions.words) == (2, 4, (("NA", 4),))
    assert "'NA' (4 rows) is a class, not a missing label" in regions.summary
    assert (stars.classes, stars.left_out, stars.words) == (2, 4, ())


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_classes_that_differ_in_case_or_blanks_are_one_in_the_most_frequent_spelling(
    tmp_path: Path, suffix: str
) -> None:
    labels = ["Our Shop", "our shop", " OUR  shop ", "Our Shop", "none", "None", "none", *"ab", *"BAB"]
    for number, order in enumerate((labels, labels[::-1])):
        source = label_source(_written(pl.DataFrame({"text": TEXTS, "label": order}), tmp_path / f"{number}.{suffix}"))
        assert (source.classes, source.left_out) == (4, 0)
        assert {*read_labels(source)["label"]} == {"Our Shop", "none", "B", "A"}
        assert "equal but for case and blanks: " in source.summary
        assert "`our shop` (1) is `Our Shop`" in source.summary
        assert "`None` (1) is `none`" in source.summary


def test_yes_and_no_are_the_scores_1_and_0(tmp_path: Path) -> None:
    rows = pl.DataFrame({"a": TEXTS, "b": TEXTS[::-1], "is_duplicate": ["Yes", "no", "NA"] * 4})
    read = read_labels(label_source(_written(rows, tmp_path / "pairs.csv")))
    assert read["label"].to_list() == ["1", "0"] * 4


def test_named_columns_are_read(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"subject": TEXTS[::-1], "my body & more": TEXTS, "question": TEXTS[::-1], "label": ["x", "y"] * 6,
         "queue #1": ["a", "b", "c"] * 4}
    )  # fmt: skip
    path = _written(rows, tmp_path / "tickets.csv")
    source = label_source(with_label_columns(path, "queue #1", ["my body & more"]))
    assert (source.kind, source.texts, source.label) == ("classes", ("my body & more",), "queue #1")
    assert source.summary == ("labels: 3 classes, text in `my body & more`, class in `queue #1`; `subject` is not used")
    assert read_labels(source)["text_1"].to_list() == TEXTS
    assert label_source(f"{path}#label=label&text=question").texts == ("question",)


UNCLEAR = {
    "an unusual name": (
        {"text": TEXTS, "id": range(12), "queue": ["a", "b", "c"] * 4}, "Did you mean `queue`: 3 values",
    ),
    "two labels": (
        {"text": TEXTS, "category": ["a", "b"] * 6, "intent": ["x", "y", "z"] * 4},
        r"several columns may be the label: `category` \(2 values\), `intent` \(3 values\)",
    ),
    "two texts": (
        {"question": TEXTS, "answer": TEXTS[::-1], "label": ["a", "b"] * 6}, "'question' and 'answer' may be the text",
    ),
    "a blank name": ({"text": TEXTS, "": ["a", "b"] * 6}, "Did you mean ``: 2 values"),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "message"), UNCLEAR.values(), ids=UNCLEAR)
def test_unclear_columns_are_asked_for_and_naming_them_works(
    tmp_path: Path, columns: dict[str, object], message: str
) -> None:
    path = _written(pl.DataFrame(columns), tmp_path / "labels.csv")
    with pytest.raises(SourceError, match=message) as refusal:
        label_source(path)
    option, column = re.findall(r"--(label|text)-column` \(.*?\): (.*?)\.(?:$| )", str(refusal.value))[-1]
    source = label_source(with_label_columns(path, **{"label": column} if option == "label" else {"texts": [column]}))
    assert column in (source.label, *source.texts)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": "lable"}, "column 'lable' is missing; .*did you mean 'label'.*--label-column"),
        ({"texts": ["txt"]}, "column 'txt' is missing; .*did you mean 'text'.*--text-column"),
        ({"label": "empty"}, "column 'empty' has no values"),
        ({"label": "id"}, "'id' has 12 different values in 12 rows"),
        ({"label": "text", "texts": ["text"]}, "expected one or two text columns, and another one as label"),
    ],
)
def test_unsuitable_named_column_is_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    rows = {"text": TEXTS, "label": ["x", "y"] * 6, "id": range(12), "empty": [None] * 12}
    path = _written(pl.DataFrame(rows), tmp_path / "labels.csv")
    with pytest.raises(SourceError, match=message):
        label_source(with_label_columns(path, **columns))


def test_folder_of_parts_is_one_table_of_labels(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    rows = pl.DataFrame({"text": TEXTS, "label": ["x", "y"] * 6})
    for number in range(3):
        rows[number * 4 : number * 4 + 4].write_parquet(tmp_path / "labels" / f"part-{number}.parquet")
    for path in (tmp_path / "labels", tmp_path / "labels" / "*.parquet"):
        assert read_labels(label_source(str(path))).select("text_1", "label").rows() == rows.rows()
    rows.write_csv(tmp_path / "labels" / "more.csv")
    with pytest.raises(SourceError, match=r"files of csv and parquet, expected one format"):
        label_source(str(tmp_path / "labels"))


def test_labels_in_another_encoding_are_read_if_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(
        pl.DataFrame({"text": [f"“{text}”" for text in TEXTS], "label": ["é", "y"] * 6}).write_csv().encode("cp1252")
    )
    with pytest.raises(SourceError, match=r"Name the encoding with `--encoding` .*`iconv -f cp1252"):
        label_source(str(path))
    assert read_labels(label_source(f"{path}#encoding=cp1252"))["label"].to_list() == ["é", "y"] * 6


@pytest.mark.parametrize("name", ["a.csv", "s3://b/a#1.csv", "a.csv#page=2", "a b/*.csv"])
def test_name_without_columns_is_a_path(name: str) -> None:
    assert label_file(name) == LabelFile(name)


@pytest.mark.parametrize("columns", ["label=a&label=b", "label=a&column=b", "encoding=nonsense"])
def test_invalid_columns_in_a_name_are_refused(columns: str) -> None:
    with pytest.raises(ValueError, match=r"expected the columns after #|not an encoding"):
        label_file(f"a.csv#{columns}")
