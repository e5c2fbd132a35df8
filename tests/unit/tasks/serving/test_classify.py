"""A file is classified row by row, from a report or from an exported folder, in the terminal and in Python."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

import bsl
from bsl.flows.cli.main import main
from bsl.storage.artifacts.refs import ENCODER, ReportRef
from bsl.storage.errors import ArtifactMissingError, SourceError
from bsl.tasks.reporting.export import copy_classifier
from bsl.tasks.serving.classify import find_classifier, read_input
from tests.classified import classified, texts_of
from tests.corpora import publish
from tests.typed_columns import write_typed


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return classified(tmp_path_factory.mktemp("classified"))


@pytest.fixture
def terminal(made, monkeypatch, tmp_path):
    monkeypatch.setenv("BSL_STORE", made.site.store)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # not needed
    monkeypatch.chdir(tmp_path)
    return tmp_path


READERS = {
    "csv": pl.read_csv, "tsv": lambda path, **kw: pl.read_csv(path, separator="\t", **kw), "jsonl": pl.read_ndjson,
    "parquet": pl.read_parquet,
}  # fmt: skip


@pytest.mark.parametrize("suffix", READERS)
def test_rows_and_columns_are_carried_in_order(made, terminal, suffix, capsys):
    new = texts_of(200, 30).drop("queue")
    new = pl.concat([new, new.head(1), pl.DataFrame({"id": [999], "body": [None]}, schema=new.schema)])
    new.write_csv("new.csv")
    assert main(["classify", str(made.report), "new.csv", f"out.{suffix}"]) == 0
    assert "text in `body`" in capsys.readouterr().err
    out = READERS[suffix](f"out.{suffix}")
    names = [f"{name}{rank}" for rank in ("", "_2", "_3") for name in ("label", "probability")]
    assert out.columns == ["id", "body", *names]
    assert out["id"].cast(pl.Int64).to_list() == new["id"].to_list()
    assert (out["label"].head(30) == texts_of(200, 30)["queue"]).all()
    assert out.row(30)[2:] == out.row(0)[2:]
    assert (out["label"][31], out["body"].null_count()) == (None, 1)
    assert '""' not in (terminal / f"out.{suffix}").read_text(errors="replace")
    chances = out.head(31).select(names[1::2]).to_numpy()
    assert chances.sum(axis=1) == pytest.approx(1, abs=1e-3)
    assert (np.diff(chances, axis=1) <= 0).all()


@pytest.mark.parametrize("suffix", READERS)
def test_dates_times_and_decimals_are_carried_with_their_type_or_as_iso_text(made, terminal, suffix, capsys):
    given, plain = write_typed("new.parquet", texts_of(200, 2)["body"])
    assert main(["classify", str(made.report), "new.parquet", f"out.{suffix}"]) == 0
    assert "nested columns and bytes are not carried: raw, tags" in capsys.readouterr().err
    options = {"infer_schema": False} if suffix in {"csv", "tsv"} else {}
    out = READERS[suffix](f"out.{suffix}", **options).select(given.columns)
    assert out.equals(given if suffix == "parquet" else plain)


def test_lists_of_json_lines_are_carried_as_json_and_are_no_text(made, terminal):
    new = texts_of(200, 2).select("id", "body", tags=[["one is a long tag here", "b"], ["c"]])
    new.write_ndjson("new.jsonl")
    assert main(["classify", str(made.report), "new.jsonl", "out.jsonl"]) == 0
    assert [json.loads(one) for one in pl.read_ndjson("out.jsonl")["tags"]] == new["tags"].to_list()
    assert read_input("new.jsonl", None, "no such column").column == "body"


def test_file_without_any_text_has_rows_without_class_and_prints_no_table(made, terminal, capsys):
    pl.DataFrame({"body": [" "], "id": ["1"]}).write_csv("new.csv")
    assert main(["classify", str(made.report), "new.csv", "out.csv"]) == 0
    assert capsys.readouterr().out.startswith("1 rows; 1 without text have no class; added: label, ")


def test_json_counts_classes_and_names_added_columns(made, terminal, capsys):
    texts_of(200, 9).rename({"queue": "label"}).write_csv("gold.csv")
    assert main(["classify", str(made.classifier), "gold.csv", "out.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["empty"]) == (9, 0)
    assert found["added"][:2] == ["predicted_label", "predicted_probability"]
    assert sum(one["count"] for one in found["classes"]) == 9
    assert pl.read_csv("out.csv")["label"].to_list() == texts_of(200, 9)["queue"].to_list()


def test_exported_folder_gives_the_same_probabilities_as_the_report(made, tmp_path):
    store, texts = made.site.open_store(), texts_of(300, 12)["body"].to_list()
    folder = tmp_path / "exported"
    shutil.copytree(store.fetch(made.exported) / ENCODER, folder)
    copy_classifier(store, made.exported, folder)
    classifier = bsl.Classifier.load(folder, device="cpu")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / ENCODER).symlink_to(folder)  # as `bsl artifacts export checkpoint/KEY` writes it
    assert bsl.Classifier.load(tmp_path / "checkpoint").predict_proba(texts[:2]) == pytest.approx(
        classifier.predict_proba(np.array(texts[:2]))
    )
    expected = bsl.Classifier.load(made.report.path, store=made.site.store, device="cpu")
    assert classifier.classes == ("account", "delivery", "refund")
    assert classifier.predict_proba(texts) == pytest.approx(expected.predict_proba(texts))
    assert classifier.predict(texts) == texts_of(300, 12)["queue"].to_list()
    assert classifier.predict_proba([]).shape == (0, 3)
    for wrong in ("a text", {"text": texts[:2]}, pl.DataFrame({"text": texts[:2]})):
        with pytest.raises(TypeError, match="expected a list of strings"):
            classifier.predict(wrong)


def test_name_without_a_classifier_says_what_to_name(made, tmp_path):
    for name, message in ((str(tmp_path), "the folder has no such file"), ("nowhere", "no such folder")):
        with pytest.raises(SourceError, match=rf"{message}.* Name report/<key>"):
            find_classifier(made.site, name, "fp32")
    other = ReportRef(key="3" * 64)
    publish(made.site.open_store(), other, page="A report without a classifier.")
    with pytest.raises(ArtifactMissingError, match=r"has no classifier .* bsl adapt TEXT --labels FILE"):
        find_classifier(made.site, other.path, "fp32")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"note": ["It was late again, sadly."] * 3, "mail": ["Please pay back my money."] * 3}, "note"),
        ({"id": [1, 2, 3], "size": [4, 5, 6]}, "no column may be the text"),
    ],
)
def test_unclear_text_column_is_asked_for(write, columns, message):
    path, named = write("new.csv", pl.DataFrame(columns).write_csv()), next(iter(columns))
    with pytest.raises(SourceError, match=rf"{message}.*Name it with --text-column"):
        read_input(path, None, "body")
    assert {read_input(path, named, "body").column, read_input(path, None, named).column} == {named}


def test_file_without_a_column_of_strings_says_what_to_write(write):
    """Regression: the message named no column, and asked to name one."""
    for row, columns in (('{"data": {"text": "Where is my parcel?"}}', "'data'"), ("{}", "none")):
        path = write("new.jsonl", f"{row}\n")
        with pytest.raises(SourceError, match=rf"\(columns: {columns}\), expected one with texts\. Write each text as"):
            read_input(path, None, "body")


@pytest.mark.parametrize(
    ("rows", "unread"),
    [
        ('{"id": 7, "data": {"text": "Where is my parcel?"}}', "`data`"),
        ('{"queue": "delivery", "messages": [{"content": "Where is my parcel?"}]}', "`messages`"),
        ('{"body": ["Where", "is", "it?"], "subject": "A parcel that has not arrived"}', "`body`"),
    ],
)
def test_column_beside_unreadable_texts_is_not_taken_for_the_text(write, rows, unread):
    """Regression: ids or labels were classified, because the column of texts has objects and is not read."""
    with pytest.raises(SourceError, match=rf"no column may be the text.*or write the values of {unread} .* as strings"):
        read_input(write("new.jsonl", f"{rows}\n" * 3), None, "body")


@pytest.mark.parametrize(("header", "row"), [("id,mail", "{},Where is parcel {}?"), ("mail", "Where is parcel {}?")])
def test_first_row_is_not_taken_for_a_header(write, header, row):
    """Regression: a file without a header lost its first row, and the result had that row as its columns."""
    rows = "".join(f"{row.format(number, number)}\n" for number in range(9))
    with pytest.raises(SourceError, match=r"line 1 should be a header.* name the text column with --text-column"):
        read_input(write("new.csv", rows), None, "body")
    assert read_input(write("headed.csv", f"{header}\n{rows}"), None, "body").table.height == 9


def test_only_column_is_not_to_be_changed(write):
    assert read_input(write("new.txt", "Where is my parcel?\n"), None, "body").summary == "text in `text`"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["new.csv", "out.txt"], "out.txt: expected a name that ends in .csv"),
        (["new.csv", "old.csv"], "old.csv: already exists. Name a new file, or delete this one."),
        (["new.csv", "./new.csv"], "new.csv: is also the input, and nothing is overwritten"),
        (["new.csv", "link.csv"], "such as link-result.csv"),
        (["folder", "out.csv"], "folder: is a folder (found 1 readable file, expected the name of one file). Name one"),
        (["*.csv", "out.csv"], "*.csv: is a pattern"),
        (["new.csv", "folder"], "folder: is a folder, expected a new file"),
        (["nwe.csv", "out.csv"], "did you mean 'new.csv'?"),
        (["new.csv", "out.csv", "--text-column", "bdy"], "did you mean 'body' for 'bdy'?"),
    ],
)
def test_unusable_files_are_refused(made, terminal, capsys, call, message):
    texts_of(0, 3).write_csv("new.csv")
    texts_of(0, 3).write_csv("old.csv")
    (terminal / "link.csv").symlink_to("new.csv")
    (terminal / "folder").mkdir()
    texts_of(0, 3).write_csv("folder/a.csv")
    assert main(["classify", str(made.report), *call]) != 0
    assert message in capsys.readouterr().err
    assert not (terminal / "out.csv").exists()
