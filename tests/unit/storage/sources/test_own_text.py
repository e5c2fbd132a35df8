"""A user's own text files: found, summarised, read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import fsspec
import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.own_text import ReadingConfig, records

if TYPE_CHECKING:
    from pathlib import Path

PROSE = [f"This is the sentence of number {n}, long enough for prose." for n in range(8)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("\n".join(PROSE) + "\n")
    (tmp_path / "in" / "book.txt").write_text("Call me by a name\nthat I chose.\n\nIt was late\nand it rained.\n")
    rows = pl.DataFrame({"ticket_no": range(8), "subject": ["Lost parcel"] * 8, "body": PROSE, "lang": ["en"] * 8})
    rows.write_csv(tmp_path / "in" / "tickets.csv")
    rows.select(thread_id=pl.col("ticket_no") // 2, comment="body", stars=1.5).write_ndjson(tmp_path / "posts.jsonl")
    rows.select(question="body", answer=pl.col("body").str.replace("This", "That"), label="lang").write_parquet(
        tmp_path / "qa.parquet"
    )
    return tmp_path


def test_mixed_formats_are_summarised_with_guessed_columns(folder: Path) -> None:
    found = ReadingConfig().sources([str(folder / "in"), str(folder / "posts.jsonl"), str(folder / "*.parquet")])
    told = {source.summary["files"]: source.summary for source in found}
    assert told["lines: lines.txt"]["text"] == "one text per line"
    assert told["book: book.txt"]["text"] == "paragraphs of wrapped lines"
    assert told["tickets: tickets.csv"] == {
        "files": "tickets: tickets.csv", "format": "csv", "text": "body", "title": "subject", "document": "",
        "not read": "ticket_no, lang",
    }  # fmt: skip
    assert told["posts: posts.jsonl"]["text"] == "comment"
    assert told["posts: posts.jsonl"]["document"] == "thread_id"
    assert told["qa: qa.parquet"]["text"] == "question, answer"


def test_glob_matches_files_of_an_object_store(folder: Path) -> None:
    place = f"memory://{folder}"
    fsspec.filesystem("memory").put(str(folder / "in" / "lines.txt"), f"{folder}/lines.txt")
    (found,) = ReadingConfig().sources([f"{place}/*.txt"])
    assert found.files == (f"{place}/lines.txt",)
    assert next(records(found, ReadReport("lines")))["text"].to_list() == PROSE


@pytest.mark.parametrize("name", ["./missing", "/data/missing", "letters/", "../x/y", "reviews", ".../x", "a/b/c\\d"])
@pytest.mark.parametrize("mirrored", [False, True])
def test_missing_path_raises_source_error_without_a_hub_request(tmp_path: Path, name: str, *, mirrored: bool) -> None:
    with pytest.raises(SourceError) as refused:
        ReadingConfig().sources([name], mirror=str(tmp_path) if mirrored else None)
    assert str(refused.value) == f"{name}: no such file, folder or dataset. Correct the name."


def test_url_with_a_password_is_rejected() -> None:
    with pytest.raises(ValueError, match="contains a password"):
        ReadingConfig().sources(["ftp://user:planted@host/folder"])


def test_records_contain_the_text_title_and_document_columns(folder: Path) -> None:
    (tickets,) = ReadingConfig().sources([str(folder / "in" / "tickets.csv")])
    (table,) = records(tickets, ReadReport("tickets"))
    assert table.row(0, named=True) == {
        "text": PROSE[0], "title": "Lost parcel", "document": None, "file": 0, "record": 0,
    }  # fmt: skip
    (pairs,) = ReadingConfig().sources([str(folder / "qa.parquet")])
    (table,) = records(pairs, ReadReport("qa"))
    assert table["record"].to_list()[:4] == [0, 0, 1, 1]


def test_columns_option_applies_only_to_files_with_these_columns(folder: Path) -> None:
    paths = [str(folder / "in"), str(folder / "posts.jsonl")]
    named = {"columns": ["subject"], "document": "ticket_no", "lang": "de"}
    found = {source.name: source for source in ReadingConfig(**named).sources(paths)}
    tickets = found["tickets"]
    assert (tickets.texts, tickets.document, tickets.lang) == (("subject",), "ticket_no", "de")
    assert (found["posts"].texts, found["posts"].document) == (("comment",), "thread_id")
    assert found["lines"].summary["text"] == "one text per line"
    with pytest.raises(SourceError, match=r"posts.jsonl: column 'bdy' is missing; .*did you mean 'body'"):
        ReadingConfig(columns=["bdy"]).sources(paths)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_column_may_be_named_twice_or_be_both_title_and_document(folder: Path, suffix: str) -> None:
    path = folder / f"named.{suffix}"
    rows = pl.read_csv(folder / "in" / "tickets.csv")
    rows.write_csv(path) if suffix == "csv" else rows.write_parquet(path)
    reading = ReadingConfig(columns=["body", "body"], title="subject", document="subject")
    (source,) = reading.sources([str(path)])
    (table,) = records(source, ReadReport("tickets"))
    assert table["text"].to_list() == PROSE
    assert set(table["title"]) == set(table["document"]) == {"Lost parcel"}


def test_empty_document_option_disables_the_document_column(folder: Path) -> None:
    (none,) = ReadingConfig(document="").sources([str(folder / "posts.jsonl")])
    assert none.document is None


def test_wrapped_lines_are_joined_into_paragraphs(folder: Path) -> None:
    (book,) = ReadingConfig().sources([str(folder / "in" / "book.txt")])
    assert book.summary["text"] == "paragraphs of wrapped lines"
    (table,) = records(book, ReadReport("book"))
    assert table["text"].to_list() == ["Call me by a name that I chose.", "It was late and it rained."]


def test_lines_are_ordered_for_paragraphs_or_many_files(folder: Path, tmp_path: Path) -> None:
    (book,) = ReadingConfig().sources([str(folder / "in" / "book.txt")])
    assert (book.ordered, book.summary["document"]) == (True, "one per file")
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text("A first line of text.\nA second line of text.\n")
    for files, ordered in (("0*.txt", False), ("*.txt", True)):
        (letters,) = ReadingConfig().sources([str(tmp_path / files)])
        assert (letters.ordered, letters.summary["document"]) == (ordered, "one per file" if ordered else "")


def test_title_option_selects_or_disables_the_title_column(tmp_path: Path) -> None:
    pl.DataFrame({"title": PROSE[::-1], "name": PROSE, "text": PROSE}).write_csv(tmp_path / "goods.csv")
    assert ReadingConfig().sources([str(tmp_path / "goods.csv")])[0].title == "title"
    assert ReadingConfig(title="name").sources([str(tmp_path / "goods.csv")])[0].title == "name"
    (none,) = ReadingConfig(title="", columns=["text"]).sources([str(tmp_path / "goods.csv")])
    assert (none.title, none.texts) == (None, ("text",))


def test_source_digest_depends_on_content_and_not_on_path(folder: Path) -> None:
    (first,) = ReadingConfig().sources([str(folder / "posts.jsonl")])
    moved = folder / "elsewhere.jsonl"
    moved.write_bytes((folder / "posts.jsonl").read_bytes())
    assert ReadingConfig().sources([str(moved)])[0].digest == first.digest


@pytest.mark.parametrize("name", ["none.txt", "in/none-*.csv", "nowhere"])
def test_missing_file_error_contains_the_given_name(folder: Path, name: str) -> None:
    with pytest.raises(SourceError, match=name.partition("/")[2].partition("*")[0] or name):
        ReadingConfig().sources([str(folder / name)])


def test_table_without_text_raises_source_error(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}).write_csv(tmp_path / "n.csv")
    with pytest.raises(SourceError, match="columns"):
        ReadingConfig().sources([str(tmp_path / "n.csv")])


def test_embedded_dataset_has_text_columns() -> None:
    (nli,) = ReadingConfig().sources(["embedded:nli-sample"])
    assert nli.texts == ("premise", "hypothesis")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("org/set/test", "org/set/test"),
        (f"org/set@{'4' * 40}/test", "org/set/test"),
        ("stsb/test", "stsb/test"),
        ("reviews", "reviews/train"),
    ],
)
def test_mirror_dataset_split_is_found_by_name(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    pl.DataFrame({"text": PROSE}).write_parquet(tmp_path / f"{file}.parquet")
    (found,) = ReadingConfig().sources([name], mirror=str(tmp_path))
    assert (found.texts, found.files) == (("text",), (f"{tmp_path}/{file}.parquet",))


def test_date_and_list_columns_are_not_read(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"text": PROSE, "created_at": [datetime(2026, 1, 1, tzinfo=UTC)] * 8, "title": [["a", "b"]] * 8}
    )
    rows.write_parquet(tmp_path / "reviews.parquet")
    (source,) = ReadingConfig().sources([str(tmp_path / "reviews.parquet")])
    assert (source.summary["text"], source.summary["not read"]) == ("text", "created_at, title")
    assert sum(frame.height for frame in records(source, ReadReport("reviews"))) == 8


def test_table_with_only_list_columns_raises_source_error(tmp_path: Path) -> None:
    rows = pl.DataFrame({"title": [["This", "table"], ["has", "no", "strings"]]})
    for name, table in (("lists", rows), ("numbers", rows.with_row_index("number"))):
        table.write_parquet(tmp_path / f"{name}.parquet")
        with pytest.raises(SourceError, match=r"no text column in .*'title'"):
            ReadingConfig().sources([str(tmp_path / f"{name}.parquet")])


def test_json_lists_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "nested.jsonl"
    path.write_text(f"{json.dumps({'text': [*PROSE], 'number': 7})}\n" * 3)
    with pytest.raises(SourceError, match=r"no text column in 'text', 'number' \('text': values are not strings\)"):
        ReadingConfig().sources([str(path)])
    with pytest.raises(SourceError, match="field 'text' is a list, expected a string"):
        ReadingConfig(columns=("text",)).sources([str(path)])


def test_known_column_names_are_text_columns_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("Premise,Hypothesis\na dog,a cat\nb dog,c cat\n")
    (pairs,) = ReadingConfig().sources([str(path)])
    assert pairs.texts == ("Premise", "Hypothesis")
