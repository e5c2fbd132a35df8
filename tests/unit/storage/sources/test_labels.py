"""Somebody's labels: pairs with a score, or classes."""

import json
import re
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.label_names import LabelFile, label_file, with_label_columns
from bsl.storage.sources.labels import label_source, read_labels
from tests.every import every
from tests.toy_sets import write_files

TEXTS = [f"A text of some words, number {n}." for n in range(12)]
QUESTIONS = [f"How long does delivery number {n} take?" for n in range(300)]
ANSWERS = [f"A delivery of size {n % 15} takes some days." for n in range(300)]
TOPICS = ["a question of when it comes", "a question of how much it is"] * 150


def titled(title, label):
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
    "pairs after a number": (
        {"id": range(12), "left": TEXTS, "right": TEXTS[::-1], "Score": [n / 3 for n in range(12)]},
        ("pairs", ("left", "right"), "Score"),
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
    "scores beside classes of inference": (
        {"premise": TEXTS, "hypothesis": TEXTS[::-1], "label": [0, 1, 2] * 4, "score": [1.0, 0.5, 0.0] * 4},
        ("pairs", ("premise", "hypothesis"), "score"),
    ),
    "short texts of pairs": (
        {"sentence_1": ["dog", "red car"] * 6, "sentence_2": ["cat", "car", "a man"] * 4, "score": range(12)},
        ("pairs", ("sentence_1", "sentence_2"), "score"),
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
def test_label_columns_are_guessed(tmp_path, columns, guess):
    source = label_source(_written(pl.DataFrame(columns), tmp_path / "labels.parquet"))
    assert (source.kind, source.texts, source.label) == guess
    assert source.left_out == 0


def _written(rows, path):
    match path.suffix:
        case ".csv":
            rows.write_csv(path)
        case ".jsonl":
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_dicts()))  # Python's json writes NaN
        case _:
            rows.write_parquet(path)
    return str(path)


NO_LABELS = {
    "thousands or decimals": (
        pl.DataFrame({"a": TEXTS, "b": TEXTS, "score": ["1,250", "2,500"] * 6}).write_csv(),
        "'score' contains '1,250', which is not a number",
    ),
    "short texts": (
        pl.DataFrame({"word": ["ab", "cd", "ef"] * 4, "label": list("xy" * 6)}).write_csv(),
        "Name the text column .*: word",
    ),
    "text alone": (pl.DataFrame({"text": TEXTS}).write_csv(), "expected two text columns and a number"),
    "a score with a sign": (
        pl.DataFrame({"a": TEXTS, "b": TEXTS, "score": ["45%", *map(str, range(11))]}).write_csv(),
        r"'score' contains '45%', which is not a number\), expected two text columns and a number",
    ),
    "150 classes": (
        pl.DataFrame({"text": QUESTIONS, "label": [n // 2 for n in range(300)]}).write_csv(),
        r"'label' has 150 different values\), expected .* 2 to 100 classes.*\. Did you mean `label`: 150 values",
    ),
    "no header": (
        "".join(f'{n},"{text}",{n % 2 + 5}\n' for n, text in enumerate(TEXTS)),
        "line 1 should be a header, but '0' is a number .* with `--text-column` .*, and the label with `--label",
    ),
    "no texts": (
        pl.DataFrame({"text": [None] * 12, "label": list("xy" * 6)}).write_csv(), "Column 'text' has no texts: write",
    ),
    "a bad line": (
        pl.DataFrame({"text": TEXTS, "label": list("xy" * 6)}).write_csv() + "one field\n", "line 14: 1 fields",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "why"), NO_LABELS.values(), ids=NO_LABELS)
def test_csv_without_usable_labels_raises_source_error(tmp_path, content, why):
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(SourceError, match=why):
        label_source(str(tmp_path / "labels.csv"))


@every(
    [
        ({"tokens": [["a", "b"]] * 12}, "no labels found in the columns 'tokens'.*Write 'tokens' as strings"),
        ({"text": [[text] for text in TEXTS], "label": [*"xy" * 6]}, "Write 'text' as strings"),
        (
            {"sentence1": TEXTS, "sentence2": TEXTS[::-1], "gold_label": ["neutral", "entailment", "-"] * 4},
            "'gold_label' .-, entailment, neutral. looks like classes of pairs.*such as 1, 0.5 and 0.$",
        ),
        ({"a": TEXTS, "b": TEXTS[::-1], "score": ["72%", "5%"] * 6}, "Write scores as numbers .* such as 0.72.$"),
        (
            {"a": TEXTS, "b": TEXTS[::-1], "score": [f"{n}.5%" for n in range(12)]},
            "Write scores as numbers .* such as 0.72.$",
        ),
        (
            {"a": [[text] for text in TEXTS], "b": TEXTS, "score": [1, 2] * 6},
            "Did you mean `score`.* 'a' cannot be read: ",
        ),
        ({"text": TEXTS, "label": [["x"], ["y"]] * 6}, "Write 'label' as strings"),
        ({"text": TEXTS}, "Add a column with the class of each row, such as `label`.$"),
        ({"text": TEXTS, "label": ["x"] * 12}, "Write at least two classes, with several rows each, into 'label'.$"),
        (
            {"a": TEXTS, "b": TEXTS[::-1], "score": [1.0] * 12},
            "Write different scores into 'score', such as 1 for si",
        ),
        ({"title": TEXTS, "text": TEXTS[::-1]}, "Add a column with the class of each row, such as `label`.$"),
        ({"title": TEXTS, "text": TEXTS[::-1], "label": ["x"] * 12}, "Write at least two classes, .* into 'label'.$"),
        ({"query": TEXTS, "document": TEXTS[::-1]}, "Add a column `score`, such as 1 for similar texts and 0 for text"),
        (
            {"anchor": TEXTS, "positive": TEXTS[::-1], "negative": [*TEXTS[6:], *TEXTS[:6]]},
            "Write two texts into each row and add a column `score`, such as 1 for similar texts and 0 for others.$",
        ),
        (
            {"text": TEXTS, "cats": [{"x": 1.0}] * 12},
            "Add a column .* 'cats' cannot be read: the values are lists, obj",
        ),
    ]
)
def test_columns_of_other_types_are_named_as_the_obstacle(columns, remedy):
    with TemporaryDirectory() as folder, pytest.raises(SourceError, match=remedy):
        label_source(_written(pl.DataFrame(columns), Path(folder) / "a.parquet"))


@pytest.mark.parametrize("options", [{"label": "kinds"}, {"texts": ["parts"]}])
def test_named_column_of_another_type_is_refused_by_its_type(tmp_path, options):
    """Regression: a named column of lists was called missing, or the advice was to rename columns."""
    table = pl.DataFrame({"text": TEXTS, "kinds": [["x"]] * 12, "parts": [["y"]] * 12, "label": [*"xyz" * 4]})
    (name,) = options.get("texts", [options.get("label")])
    for columns in (table.columns, ["kinds", "parts"]):
        path = _written(table.select(columns), tmp_path / "labels.parquet")
        with pytest.raises(SourceError, match=f"column '{name}' has type .*list.*, expected strings or numbers"):
            label_source(with_label_columns(path, **{"label": None, "texts": [], **options}))


def test_text_file_has_no_labels(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"x\t{text}\n" for text in TEXTS))
    with pytest.raises(SourceError, match=r"text file has no columns, .* Save texts and labels as \.csv, or \.tsv"):
        label_source(str(tmp_path / "a.txt"))


def test_files_of_two_formats_are_refused(tmp_path):
    write_files(tmp_path, {"a.csv": "", "b.jsonl": ""})
    with pytest.raises(SourceError, match="files of csv and jsonl, expected one format"):
        label_source(str(tmp_path))


def test_files_with_other_columns_than_the_first_are_refused(tmp_path):
    """Regression: the remedy was an option that labels do not have."""
    write_files(tmp_path, {"a.csv": "text,label\none,x\n", "b.csv": "body,label\ntwo,y\n"})
    with pytest.raises(
        SourceError, match=r"b\.csv: column 'text' is missing.*Name the right columns alike in all files"
    ):
        label_source(str(tmp_path))


XY = [*"xyxyxyxyxyx"]
NAMES = ["Our Shop", "our shop", " OUR  shop ", "Our Shop", "none", "None", "none", *"ab", *"BAB"]
READ: dict[str, tuple[dict[str, list[Any]], list[str], tuple[str, ...]]] = {
    # Label column (and a second text column for pairs) → labels that are read, words of the summary
    "blank": ({"label": [None, " ", *"xyxyxyxyxy"]}, [*"xyxyxyxyxy"], ("class in `label`",)),
    **{
        f"{marker!r} of one row": ({"label": [marker, *XY]}, XY, ())
        for marker in ("None", "NULL", "null", "N/A", "n/a", "NA", "<NA>", "nan", "inf", "-INF", " ")
    },
    "NaN": ({"label": [float("nan"), 0.5, *[1.5, 0.5] * 5]}, ["0.5", *["1.5", "0.5"] * 5], ()),
    "equal numbers": (
        {"label": ["1", "1.0", "2", "2.50"] * 3}, ["1", "1", "2", "2.50"] * 3, ("equal as numbers", "`1.0` (3) is `1`"),
    ),
    "NA among words": ({"label": ["NA", "EU", None] * 4}, ["NA", "EU"] * 4, ("'NA' (4 rows) is a class, not a",)),
    "NA among numbers": ({"label": ["NA", "1", "2"] * 4}, ["1", "2"] * 4, ()),
    "spellings": (
        {"label": NAMES}, [*["Our Shop"] * 4, *["none"] * 3, *"ABBAB"],
        ("but for case, blanks, unseen characters: ", "`our shop` (1) is `Our Shop`", "`None` (1) is `none`"),
    ),
    "forms of an accent, and characters without width": (
        {"label": ["Caf\u00e9", "Cafe\u0301", "Caf\u00e9", "pos", "\ufeffpos", "po\u200bs", "INF", "INF", "pos"]},
        [*["Caf\u00e9"] * 3, *["pos"] * 3, "INF", "INF", "pos"], ("'INF' (2 rows) is a class",),
    ),
    "spellings, rarest first": ({"label": NAMES[::-1]}, [*"BABBA", *["none"] * 3, *["Our Shop"] * 4], ()),
    "yes and no of pairs": ({"b": TEXTS[::-1], "label": ["Yes", "no", "NA"] * 4}, ["1", "0"] * 4, ()),
    "decimal commas of three digits": (
        {"b": TEXTS[::-1], "score": ["0,512", "0,734", "1234,567"] * 4}, ["0.512", "0.734", "1234.567"] * 4, (),
    ),
    "decimal commas": (
        {"b": TEXTS[::-1], "score": ["0,5", "-1,25", "3", "NA"] * 3}, ["0.5", "-1.25", "3"] * 3,
        ("score in `score`; the score 0,5 is read as 0.5",),
    ),
    "scores of pairs": (
        {"b": [*TEXTS[1:], None], "label": [None, *(n + 0.5 for n in range(1, 12))]}, [f"{n}.5" for n in range(1, 11)],
        ("`text` and `b`",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])  # the others: tests/differential/test_tables.py
@pytest.mark.parametrize(("columns", "labels", "said"), READ.values(), ids=READ)
def test_labels_are_read_without_missing_ones(tmp_path, suffix, columns, labels, said):
    rows = pl.DataFrame({"text": TEXTS[: len(next(iter(columns.values())))], **columns})
    source = label_source(_written(rows, tmp_path / f"labels.{suffix}"))
    assert source.kind == ("pairs" if "b" in columns else "classes")
    read = read_labels(source)
    assert read["label"].to_list() == labels
    assert source.left_out == rows.height - len(labels)
    assert source.classes == (0 if "b" in columns else len(set(labels)))
    assert all(word in source.summary for word in said)


def test_texts_of_pairs_stay_with_their_scores(tmp_path):
    """For classes, tests/differential/test_tables.py shows it in every format."""
    rows = pl.DataFrame({"a": TEXTS, "b": TEXTS[::-1], "score": [None, *(n / 8 for n in range(1, 12))]})
    assert read_labels(label_source(_written(rows, tmp_path / "pairs.jsonl"))).row(2) == (TEXTS[3], TEXTS[8], "0.375")


@pytest.mark.parametrize(("key", "value", "kind"), [("label", ["x"], "a list"), ("text", {"en": "x"}, "an object")])
def test_lists_and_objects_among_strings_of_json_lines_are_refused(tmp_path, key, value, kind):
    """Regression: the first was a class named `["x"]`, the second was scored as the text `{"en":"x"}`."""
    records = [{"text": f"[{text}]", "label": "xy"[n % 2]} for n, text in enumerate(TEXTS)]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert label_source(str(path)).classes == 2
    records[6][key] = value
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    with pytest.raises(SourceError, match=f"labels.jsonl, line 7: '{key}' is {kind}, expected a string or a number"):
        label_source(str(path))


@pytest.mark.parametrize("score", ["inf", "-inf", "99999999999999999999999999", "-1e7"])
def test_out_of_range_score_error_names_the_row(tmp_path, score):
    first = f"{TEXTS[0]} Of two lines,\nand information about inf."
    rows = pl.DataFrame({"a": [first, *TEXTS[1:]], "b": TEXTS, "score": ["", *"1234", score, *"123456"]})
    path = _written(rows, tmp_path / "pairs.csv")
    said = f"pairs.csv: row 6 has the score '{score}' in column 'score', expected a finite similarity within"
    with pytest.raises(SourceError, match=said):
        label_source(path)


def test_advice_for_pairs_with_a_title_names_both_texts(tmp_path):
    """Regression: the advice was the column of scores alone, and then to write these numbers as numbers."""
    table = pl.DataFrame({"title": [f"On {text}" for text in TEXTS], "a": TEXTS, "b": TEXTS[::-1], "score": range(12)})
    path = _written(table.with_columns(pl.col("score") % 3), tmp_path / "labels.csv")
    with pytest.raises(SourceError, match=r"with `--label-column` .*: score\. And name the texts with .*: a b\.$"):
        label_source(path)
    with pytest.raises(SourceError, match=r"Or for pairs, name both: a b\.$"):
        label_source(with_label_columns(path, "score"))
    assert label_source(with_label_columns(path, "score", ["a", "b"])).kind == "pairs"


@pytest.mark.parametrize("names", [("sentence_1", "sentence_2"), ("sentence2", "sentence1")])
def test_pairs_of_few_first_texts_are_scored_pairs(tmp_path, names):
    """Regression: yes and no of five questions with many answers each were classes of the answers alone."""
    rows = {names[0]: QUESTIONS[:3] * 100, names[1]: QUESTIONS, "label": ["1", "0"] * 150}
    source = label_source(_written(pl.DataFrame(rows), tmp_path / "labels.csv"))
    assert (source.kind, sorted(source.texts), source.label) == ("pairs", sorted(names), "label")


def test_text_that_repeats_and_is_not_used_is_said(tmp_path):
    """Regression: the questions of rated answers were ignored without a word."""
    rows = {"query": QUESTIONS[:3] * 100, "passage": QUESTIONS, "label": ["a", "b", "c", "c"] * 75}
    source = label_source(_written(pl.DataFrame(rows), tmp_path / "labels.csv"))
    assert (source.texts, source.unused) == (("passage",), ("query",))


def test_error_of_another_encoding_names_it_for_a_set(tmp_path):
    """Regression: the advice was `--encoding` alone, which `bsl evaluate` does not have."""
    path = tmp_path / "labels.csv"
    path.write_text("text,label\n" + "".join(f'"{text} é",{"xy"[n % 2]}\n' for n, text in enumerate(TEXTS)), "cp1252")
    with pytest.raises(SourceError, match=r"set of labels: `labels:FILE#encoding=NAME`.* cp1252"):
        label_source(str(path))
    assert label_source(f"{path}#encoding=cp1252").classes == 2


def test_named_columns_are_read(tmp_path):
    rows = pl.DataFrame(
        {"subject": TEXTS[::-1], "my body & more": TEXTS, "question": TEXTS[::-1], "label": ["x", "y"] * 6,
         "queue #1": ["a", "b", "c"] * 4}
    )  # fmt: skip
    path = _written(rows, tmp_path / "tickets.csv")
    source = label_source(with_label_columns(path, "queue #1", ["my body & more"]))
    assert (source.kind, source.texts, source.label) == ("classes", ("my body & more",), "queue #1")
    assert source.unused == ("subject", "question")
    read = "labels: 3 classes, text in `my body & more`, class in `queue #1`"
    assert source.summary == f"{read}; `subject` is not used; `question` is not used"
    assert read_labels(source)["text_1"].to_list() == TEXTS
    assert label_source(f"{path}#label=label&text=question").texts == ("question",)


REMEDIES = {
    # Columns, options → columns that are read if each remedy is followed
    "short texts": (
        {"id": range(12), "item": ["bolt", "nut", "saw"] * 4, "goods": [*"xy" * 6]}, {}, ("item",), "goods",
    ),
    "the label before short texts": (
        {"goods": ["tools", "parts"] * 6, "item": [f"{name} {n}" for n, name in enumerate(["bolt", "nut"] * 6)]},
        {"label": "goods"}, ("item",), "goods",
    ),
    "one of two texts": (
        {"one": TEXTS, "two": TEXTS[::-1], "kind": [*"xyz" * 4]}, {"texts": ["two"]}, ("two",), "kind",
    ),
    "three texts": (
        {"one": TEXTS, "two": [text * 2 for text in TEXTS], "three": TEXTS, "kind": [*"xyz" * 4]}, {}, ("two",), "kind",
    ),
    "words in a named label of two texts": (
        {"one": TEXTS, "two": TEXTS[::-1], "kind": [*"xyz" * 4]}, {"label": "kind"}, ("one",), "kind",
    ),
    "150 classes": ({"text": QUESTIONS, "label": [n // 2 for n in range(300)]}, {}, ("text",), "label"),
    "a title, a text and their score": (
        {"title": TEXTS, "text": TEXTS[::-1], "score": [1, 2, 3] * 4}, {}, ("title", "text"), "score",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "options", "texts", "label"), REMEDIES.values(), ids=REMEDIES)
def test_followed_remedies_lead_to_labels(tmp_path, columns, options, texts, label):
    path = _written(pl.DataFrame(columns), tmp_path / "labels.parquet")
    given = {"label": None, "texts": [], **options}
    for _ in range(2):
        try:
            label_source(with_label_columns(path, **given))
        except SourceError as error:
            advised = dict(re.findall(r"--(text|label)-column` [(].*?[)]: ([^.;]+)", str(error)))
            given["label"] = advised.get("label", given["label"])
            given["texts"] = advised["text"].split() if "text" in advised else given["texts"]
    source = label_source(with_label_columns(path, **given))
    assert (source.texts, source.label) == (texts, label)


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
    "words for scores": (
        {"one": TEXTS, "two": TEXTS[::-1], "score": ["high", "low"] * 6},
        "'score' contains 'high', which is not a number.* for classes of one text, name it .*: one; and the label",
    ),
    "numbers of classes of inference": (
        {"premise": TEXTS, "hypothesis": TEXTS[::-1], "label": [0, 1, 0, 1, -1, 0] * 2},
        r"'label' \(-1, 0, 1\) looks like classes of pairs, .* a column `score`, such as 1, 0.5 and 0",
    ),
    "numbers with a 2 of other texts": (
        {"hypothesis": TEXTS, "text": TEXTS[::-1], "label": [0, 1, 2] * 4}, r"'label' \(0, 1, 2\) looks like classes",
    ),
    "scores of an unusual name": (
        {"one": TEXTS, "two": TEXTS[::-1], "id": [7] * 12, "human": [n / 7 for n in range(12)]},
        "Did you mean `human`: 12 values",
    ),
    "a blank name": ({"text": TEXTS, "": ["a", "b"] * 6}, "Did you mean ``: 2 values"),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "message"), UNCLEAR.values(), ids=UNCLEAR)
def test_unclear_columns_are_asked_for_and_naming_them_works(tmp_path, columns, message):
    path = _written(pl.DataFrame(columns), tmp_path / "labels.csv")
    with pytest.raises(SourceError, match=message) as refusal:
        label_source(path)
    named = dict(re.findall(r"--(label|text)-column` \(.*?\): (.*?)[.;](?:$| )", str(refusal.value)))
    texts = {"texts": [named["text"]]} if "text" in named else {}
    source = label_source(with_label_columns(path, named.get("label"), **texts))
    assert {*named.values()} <= {source.label, *source.texts}
    assert source.kind == ("pairs" if {"human", "hypothesis"} & {*columns} else "classes")


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
def test_unsuitable_named_column_is_refused(tmp_path, columns, message):
    rows = {"text": TEXTS, "label": ["x", "y"] * 6, "id": range(12), "empty": [None] * 12}
    path = _written(pl.DataFrame(rows), tmp_path / "labels.csv")
    with pytest.raises(SourceError, match=message):
        label_source(with_label_columns(path, **columns))


def test_columns_in_a_name_are_known_options_or_part_of_the_path():
    for name in ("a.csv", "s3://b/a#1.csv", "a.csv#page=2", "a b/*.csv"):
        assert label_file(name) == LabelFile(name)
    for columns in ("label=a&label=b", "label=a&column=b", "encoding=nonsense"):
        with pytest.raises(ValueError, match=r"expected the columns after #|not an encoding"):
            label_file(f"a.csv#{columns}")
