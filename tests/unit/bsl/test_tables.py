"""What people have in Python: tables of four libraries, lists and columns of texts and labels."""

import re
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import bsl
from bsl.models.evaluation.significance.hierarchical import holm
from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.labels import label_source, read_labels
from bsl.storage.sources.own_text import records, text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.tables import Files

TEXTS = [f"The {thing} of house {number} is old." for number in range(20) for thing in ("river", "engine")]
TOPICS = ["water", "machine"] * 20
COLUMNS = {"text": TEXTS, "topic": TOPICS}
TABLES = {
    "polars": pl.DataFrame(COLUMNS),
    "polars, lazy": pl.LazyFrame(COLUMNS),
    "polars, categories": pl.DataFrame(COLUMNS).with_columns(pl.col("topic").cast(pl.Categorical)),
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, categories, a filtered index": pd.DataFrame(
        {"text": ["x", *TEXTS], "topic": pd.Categorical(["water", *TOPICS])}
    ).iloc[1:],
    "arrow": pa.table(COLUMNS),
    "datasets": datasets.Dataset.from_dict(COLUMNS),
    "a dictionary": COLUMNS,
    "dictionaries": [{"text": text, "topic": topic} for text, topic in zip(TEXTS, TOPICS, strict=True)],
    "lists": (TEXTS, TOPICS),
    "an array of labels": (TEXTS, np.array(TOPICS)),
    "columns of pandas": (pd.Series(TEXTS, index=range(9, 49)), pd.Series(TOPICS)),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_labels_of_any_table_are_read_as_from_a_file(table):
    with Files() as files:
        rows = read_labels(label_source(files.labels(table)))
    assert rows["text_1"].to_list() == TEXTS
    assert rows["label"].to_list() == TOPICS


@pytest.mark.parametrize("texts", [TEXTS, tuple(TEXTS), pd.Series(TEXTS), pl.Series(TEXTS), np.array(TEXTS)])
def test_list_or_column_of_texts_may_have_its_labels_beside_it(texts):
    with Files() as files:
        (source,) = text_sources(ReadingConfig(), files.texts(texts))
        assert source.texts == ("text",)
        assert read_labels(label_source(files.labels(TOPICS, texts)))["text_1"].to_list() == TEXTS


def test_missing_labels_of_pandas_and_classes_below_zero_of_a_dataset_are_missing():
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    numbers = {"text": TEXTS, "label": [-1, *[1, 0] * 19, 1]}
    dataset = datasets.Dataset.from_dict(numbers, features=features)
    with Files() as files:
        rows = read_labels(label_source(files.labels(dataset)))
        assert rows["label"].to_list() == [*["yes", "no"] * 19, "yes"]
        for missing in (None, float("nan"), pd.NA):
            table = pd.DataFrame({"text": TEXTS, "label": [missing, *TOPICS[1:]]})
            assert read_labels(label_source(files.labels(table))).height == 39


NAN = float("nan")
WITH_NAN = {"text": [NAN, *TEXTS[1:]], "title": [NAN, *TEXTS[1:]], "page": [NAN, *map(float, range(39))]}


@pytest.mark.parametrize("rows", [WITH_NAN, pd.DataFrame(WITH_NAN).to_dict("records"), pd.DataFrame(WITH_NAN)])
def test_nan_is_no_text_title_or_document(rows):
    """Regression: pandas alone had its missing values; of dictionaries, `NaN` was a text and the title of several."""
    with Files() as files:
        (source,) = text_sources(ReadingConfig(), files.texts(rows))
        found = next(records(source, ReadReport("texts")))
        assert (source.title, source.document) == ("title", "page")
        assert found.row(0)[:3] == ("", None, None)
        assert found["text"].to_list()[1:] == TEXTS[1:]
        labels = files.labels((WITH_NAN["text"], TOPICS))
        assert read_labels(label_source(labels))["text_1"].to_list() == TEXTS[1:]


def test_rows_may_begin_with_missing_values_and_must_all_be_dictionaries():
    """Regression: after a hundred rows with NaN, a number was refused with advice for Polars."""
    rows = [{"text": text, "page": NAN if number < 120 else 0.5} for number, text in enumerate(TEXTS * 4)]
    with Files() as files:
        (written,) = files.texts(rows)
        assert pl.read_parquet(written)["page"].to_list() == [None] * 120 + [0.5] * (len(rows) - 120)
        with pytest.raises(TypeError, match=r"^(?!.*attribute).*texts"):
            files.texts([*rows, "text"])


def test_scored_pairs_are_three_lists():
    scores = [number / 10 for number in range(40)]
    with Files() as files:
        source = label_source(files.labels((TEXTS, TEXTS[::-1], np.array(scores))))
        assert source.kind == "pairs"
        assert [float(score) for score in read_labels(source)["label"]] == scores


def test_names_of_files_stay_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file of my texts.csv").write_text("text\nx\n")
    with Files() as files:
        for names in ("notes.txt", ["notes.txt", "embedded:nli-sample"], ["a file of my texts.csv"]):
            assert files.texts(names) == ([names] if isinstance(names, str) else names)
        assert files.suite("sts") == ["sts"]
        assert files.suite(("sts", "trec")) == ["sts", "trec"]
        assert files.labels("labels.csv", TEXTS) == "labels.csv"
        (tmp_path / "labels.csv").write_text("text,label\nx,y\n")
        assert files.suite(Path("labels.csv")) == ["labels:labels.csv"]
        with pytest.raises(ValueError, match=r"Pass 'labels:labels\.csv' or 'own:labels\.csv'"):
            files.suite("labels.csv")
        path = files.labels(COLUMNS)
    with pytest.raises(SourceError):  # the file of a table is removed
        label_source(path)


@pytest.mark.parametrize(
    "texts",
    [[f"reset password {number}" for number in range(40)], ["pizza", "pasta"] * 20, ["Where is my parcel?"] * 40],
)
def test_short_or_repeated_texts_are_no_names(texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Files() as files:
        (path,) = files.texts(texts)
        assert pl.read_parquet(path)["text"].to_list() == texts
        assert pl.read_parquet(*files.texts(texts[:4], labelled=True))["text"].to_list() == texts[:4]
        labelled = pl.read_parquet(files.labels(["a", "b", "c", "d"], texts[:4]))
        assert labelled.to_dict(as_series=False) == {"text": texts[:4], "label": ["a", "b", "c", "d"]}


def letters(texts):
    return [[text.count(letter) + 1e-3 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def lengths(texts):
    return [[len(text), 1.0] for text in texts]


def test_compare_corrects_p_of_several_encoders():
    """Regression: the table had uncorrected p, `bsl evaluate` of the same encoders Holm's."""
    encoders = {"first": letters, "other": lengths, "again": lambda texts: [[len(text) ** 2, 3.0] for text in texts]}
    pairs = [bsl.compare({"first": letters, name: encoders[name]}, COLUMNS) for name in ("other", "again")]
    raw = [float(pair["p_value"][0]) for pair in pairs]
    assert max(raw) < 1
    corrected = bsl.compare(encoders, COLUMNS).filter(metric=pairs[0]["metric"][0])
    assert corrected["p_value"].to_list() == pytest.approx(holm(raw))


def test_difference_of_one_in_many_encoders_can_pass_the_correction():
    """Regression: with 1,000 draws, Holm's p of 26 comparisons cannot fall below 0.05."""
    many = {str(number): lambda texts: [["river" in text, "engine" in text] for text in texts] for number in range(27)}
    assert bsl.compare({"first": lengths, **many}, COLUMNS)["p_value"].min() < 0.05


def test_evaluate_and_compare_take_tables_and_name_no_temporary_folder():
    for given in (pd.DataFrame(COLUMNS), (TEXTS, TOPICS), [pl.DataFrame(COLUMNS)]):
        table = bsl.compare([lengths, letters], given)
        assert {*table["model"], *table["reference"]} == {"letters", "lengths"}
        assert {*table["dataset"]} == {"labels:labels.parquet"}
        scores = {one: bsl.evaluate(one, given).scores for one in (letters, lengths)}
        assert {*scores[letters]["dataset"]} == {"labels:labels.parquet"}
        assert "/" not in scores[letters]["signature"][0]
        metrics = dict(zip(scores[letters]["metric"], scores[letters]["value"] - scores[lengths]["value"], strict=True))
        for metric, value in table.select("metric", "value").iter_rows():
            assert value == pytest.approx(metrics[metric], abs=1e-9)
    assert table["value"].max() > 0
    named = bsl.compare({"first": letters, "a|second": letters}, COLUMNS)
    assert {*named["model"], *named["value"], *named["ci_high"]} == {"a|second", 0.0}
    loaded = {"a": "embedded:bert-mini", "b": bsl.SentenceEncoder.load("embedded:bert-mini")}
    assert {*bsl.compare(loaded, COLUMNS)["value"]} == {0.0}
    tensors = bsl.evaluate(
        lambda texts: [torch.tensor(row, requires_grad=True).bfloat16() for row in letters(texts)], COLUMNS
    )
    assert tensors.scores.height == scores[letters].height
    with pytest.raises(ValueError, match="two encoders have the name 'letters'"):
        bsl.compare([letters, letters], COLUMNS)
    with pytest.raises(bsl.models.errors.EvaluationError, match="letters: expected two or more encoders"):
        bsl.compare([letters], COLUMNS)


TOO_LITTLE = (bsl.models.errors.EmptyCorpusError, bsl.models.errors.EvaluationError)


def test_adapt_reads_tables_and_names_what_is_too_little(tmp_path):
    given = {"store": tmp_path / "store", "device": "cpu"}
    for texts, labels in ((pd.DataFrame(COLUMNS), None), (TEXTS, TOPICS), (pl.Series(TEXTS), pl.DataFrame(COLUMNS))):
        with pytest.raises(TOO_LITTLE, match=r"too little text|too few documents|usable training labels"):
            bsl.adapt(texts, labels=labels, **given)


VECTORS = np.random.default_rng(0).normal(size=(300, 384)).astype(np.float32)
WRONG = {
    "adapt: vectors": lambda: bsl.adapt(VECTORS),
    "adapt: a number": lambda: bsl.adapt(3),
    "adapt: a list of vectors": lambda: bsl.adapt(VECTORS.tolist()),
    "adapt: labels are vectors": lambda: bsl.adapt(TEXTS, labels=VECTORS),
    "adapt: labels beside a file": lambda: bsl.adapt("notes.txt", labels=TOPICS),
    "adapt: other length": lambda: bsl.adapt(TEXTS, labels=TOPICS[1:]),
    "adapt: a dictionary of splits": lambda: bsl.adapt(datasets.DatasetDict(train=datasets.Dataset.from_dict(COLUMNS))),
    "adapt: long texts that are no file": lambda: bsl.adapt(["x" * 5000]),
    "adapt: a setting": lambda: bsl.adapt(TEXTS, changes={"training": {"lr": VECTORS.tolist()}}),
    "adapt: an encoder that is loaded": lambda: bsl.adapt("notes.txt", bsl.SentenceEncoder),
    "adapt: a column without labels": lambda: bsl.adapt("notes.txt", label_column="topic"),
    "evaluate: an empty table": lambda: bsl.evaluate(len, pl.DataFrame()),
    "run: nothing": lambda: bsl.run(None),
    "compare: encoders without sets": lambda: bsl.compare([len, lengths]),
    "compare: embedded encoders without sets": lambda: bsl.compare(["embedded:mini-sentence", "embedded:bert-mini"]),
    "compare: one encoder": lambda: bsl.compare("embedded:mini-sentence", "embedded:stsb/test"),
    "load: an empty name": lambda: bsl.SentenceEncoder.load(""),
    "encode: another device": lambda: bsl.SentenceEncoder.load("embedded:mini-sentence").encode(TEXTS, device="hpu:9"),
    "evaluate: vectors": lambda: bsl.evaluate(VECTORS, "sts"),
    "evaluate: a suite of vectors": lambda: bsl.evaluate(len, VECTORS.tolist()),
    "evaluate: a number": lambda: bsl.evaluate(len, 3),
    "evaluate: an unknown suite": lambda: bsl.evaluate(len, "x" * 5000),
    "compare: vectors": lambda: bsl.compare([str(VECTORS.tolist()), "latest"]),
    "load: a name of numbers": lambda: bsl.SentenceEncoder.load(str(VECTORS.tolist())),
    "load: a setting": lambda: bsl.SentenceEncoder.load("embedded:mini-sentence", pooling=VECTORS.tolist()),
    "recipe: a name": lambda: bsl.recipe(str(VECTORS.tolist())),
    "recipe: a setting": lambda: bsl.recipe("tiny", {"training": {"max_steps": VECTORS.tolist()}}),
    "run: a place": lambda: bsl.run("tiny", store=VECTORS.tolist()),
    "encode: vectors": lambda: bsl.SentenceEncoder.load("embedded:mini-sentence").encode(VECTORS),
    "encode: a list of vectors": lambda: bsl.SentenceEncoder.load("embedded:mini-sentence").encode([*VECTORS]),
    "similarity: another width": lambda: bsl.SentenceEncoder.load("embedded:mini-sentence").similarity(
        VECTORS[:, :9], VECTORS
    ),
}  # fmt: skip
_LONGEST = 600  # characters: a value of 100, and what was expected


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_value_is_refused_in_one_short_message(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError, bsl.models.errors.ModelError, bsl.storage.errors.StorageError)) as found:
        call()
    message = str(found.value)
    assert len(message) <= _LONGEST, message
    assert message.count("\n") <= 3, message


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: bsl.evaluate(letters, COLUMNS, label_column="z"), "right columns with label_column."),
        (lambda: bsl.evaluate(letters, COLUMNS, text_columns="z"), "right columns with text_columns."),
        (lambda: bsl.compare([letters, lengths], {"a": [1, 2], "b": [3, 4]}), "text column with text_columns: a."),
        (
            lambda: bsl.adapt({"a": [*range(40)]}),
            "texts.parquet: no text column in 'a', expected",
        ),
        (lambda: bsl.adapt({"a": [*range(40)]}), "Name the text columns with texts=table['NAME']."),
        (lambda: bsl.adapt(TEXTS, document="writer"), "right columns with document."),
        (lambda: bsl.adapt(TEXTS, labels=TOPICS[1:]), f"text and label have {len(TEXTS)} and {len(TOPICS) - 1} values"),
    ],
)
def test_error_names_parameters_and_no_temporary_folder(call, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, bsl.storage.errors.StorageError)) as found:
        call()
    message = str(found.value)
    assert told in message
    assert not re.search("--|/", message), message
