"""A user's own text files: found, summarised, read."""

import json
from datetime import UTC, datetime
from tempfile import NamedTemporaryFile

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.own_text import records, text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from tests.every import every

PROSE = [f"This is the sentence of number {n}, long enough for prose." for n in range(8)]
ROWS = pl.DataFrame({"ticket_no": range(8), "subject": ["Lost parcel"] * 8, "body": PROSE, "lang": ["en"] * 8})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("\n".join(PROSE) + "\n")
    (tmp_path / "in" / "book.txt").write_text("Call me by a name\nthat I chose.\n\nIt was late\nand it rained.\n")
    ROWS.write_csv(tmp_path / "in" / "tickets.csv")
    for name in ("readme.md", "more.md", "letter.pdf"):
        (tmp_path / "in" / name).touch()
    ROWS.select(thread_id=pl.col("ticket_no") // 2, comment="body", stars=1.5).write_ndjson(tmp_path / "posts.jsonl")
    ROWS.select(question="body", answer=pl.col("body").str.replace("This", "That"), label="lang").write_parquet(
        tmp_path / "qa.parquet"
    )
    return tmp_path


def found(path, **options):
    (source,) = text_sources(ReadingConfig(**options), [str(path)])
    return source, pl.concat(records(source, ReadReport("own")))


def test_mixed_formats_are_summarised_with_guessed_columns(folder):
    sources = text_sources(
        ReadingConfig(), [str(folder / "in"), str(folder / "posts.jsonl"), str(folder / "*.parquet")]
    )
    told = {source.summary["files"]: source.summary for source in sources}
    assert told["lines: lines.txt"]["text"] == "one text per line"
    assert told["book: book.txt"]["text"] == "paragraphs of wrapped lines"
    assert told["tickets: tickets.csv"] == {
        "files": "tickets: tickets.csv", "format": "csv", "text": "body", "title": "subject", "document": "",
        "not read": "ticket_no, lang",
    }  # fmt: skip
    assert told["posts: posts.jsonl"]["text"] == "comment"
    skipped = [summary["not read"] for summary in told.values() if "files:" in summary["not read"]]
    assert skipped == ["files: 2 .md, 1 .pdf"]
    assert told["posts: posts.jsonl"]["document"] == "thread_id"
    assert told["qa: qa.parquet"]["text"] == "question, answer"


def test_records_contain_the_text_title_and_document_columns(folder):
    _, table = found(folder / "in" / "tickets.csv")
    assert table.row(0, named=True) == {
        "text": PROSE[0], "title": "Lost parcel", "document": None, "file": 0, "record": 0,
    }  # fmt: skip
    assert found(folder / "qa.parquet")[1]["record"].to_list()[:4] == [0, 0, 1, 1]
    book, table = found(folder / "in" / "book.txt")
    assert table["text"].to_list() == ["Call me by a name that I chose.", "It was late and it rained."]
    assert (book.ordered, book.summary["document"]) == (True, "one per file")


@every(
    [
        ("A line\nof a page\n\nAnother line\nof it\n", 2),
        ("Lost parcel\nLate parcel\nWrong parcel\nNo parcel\n", 4),  # titles, without blank lines
        ("Lost parcel\n\nLate parcel\n\nWrong parcel\n", 5),  # too few lines
        ("It is lost.\nIt is late.\n\nIt is wrong.\nIt is gone\n", 5),  # sentences
        (f"{'long ' * 30}\n" * 2 + "\nA line\nof a page\n", 5),  # longer than a line of a page
    ]
)
def test_blank_lines_separate_paragraphs_only_of_wrapped_lines(text, rows):
    with NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        assert found(file.name)[1].height == rows


def test_columns_option_applies_only_to_files_with_these_columns(folder):
    paths = [str(folder / "in"), str(folder / "posts.jsonl")]
    named = {"columns": ["subject"], "document": "ticket_no", "lang": "de"}
    sources = {source.name: source for source in text_sources(ReadingConfig(**named), paths)}
    tickets = sources["tickets"]
    assert (tickets.texts, tickets.document, tickets.lang) == (("subject",), "ticket_no", "de")
    assert (sources["posts"].texts, sources["posts"].document) == (("comment",), "thread_id")
    assert sources["lines"].summary["text"] == "one text per line"
    with pytest.raises(SourceError, match=r"posts.jsonl: column 'bdy' is missing; .*did you mean 'body'"):
        text_sources(ReadingConfig(columns=["bdy"]), paths)


GOODS = pl.DataFrame({"title": PROSE[::-1], "name": PROSE, "text": PROSE})
COLUMNS = {
    # Table, options → texts, title, document
    "twice, as title and document": (
        ROWS, {"columns": ["body"] * 2, "title": "subject", "document": "subject"}, (("body",), "subject", "subject"),
    ),
    "numbers": (
        ROWS, {"columns": ["body"], "title": "ticket_no", "document": "ticket_no"},
        (("body",), "ticket_no", "ticket_no"),
    ),
    "no document": (ROWS.rename({"ticket_no": "thread_id"}), {"document": ""}, (("body",), "subject", None)),
    "the usual title": (GOODS, {"columns": ["text"]}, (("text",), "title", None)),
    "another title": (GOODS, {"title": "name", "columns": ["text"]}, (("text",), "name", None)),
    "no title": (GOODS, {"title": "", "columns": ["text"]}, (("text",), None, None)),
    "names in another case": (
        pl.DataFrame({"Premise": ["a dog"], "Hypothesis": ["a cat"]}), {}, (("Premise", "Hypothesis"), None, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "options", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_columns_are_those_of_the_options_or_of_usual_names(tmp_path, rows, options, expected):
    rows.write_parquet(tmp_path / "own.parquet")
    source, table = found(tmp_path / "own.parquet", **options)
    texts, title, document = expected
    assert (source.texts, source.title, source.document) == expected
    assert table["text"].to_list() == [text for row in rows.select(texts).rows() for text in row]
    for column, name in (("title", title), ("document", document)):
        assert name is None or set(table[column]) == set(rows[name].cast(pl.String))


def test_lines_of_many_files_are_ordered(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text("A first line of text.\nA second line of text.\n")
    for files, ordered in (("0*.txt", False), ("*.txt", True)):
        letters, _ = found(tmp_path / files)
        assert (letters.ordered, letters.summary["document"]) == (ordered, "one per file" if ordered else "")


@pytest.mark.parametrize("name", ["./missing", "/data/missing", "letters/", "../x/y", "reviews", ".../x", "a/b/c\\d"])
@pytest.mark.parametrize("mirrored", [False, True])
def test_missing_path_raises_source_error_without_a_hub_request(tmp_path, name, *, mirrored):
    with pytest.raises(SourceError) as refused:
        text_sources(ReadingConfig(), [name], mirror=str(tmp_path) if mirrored else None)
    assert str(refused.value) == f"{name}: no such file, folder or dataset. Correct the name."


def test_embedded_dataset_has_text_columns():
    (nli,) = text_sources(ReadingConfig(), ["embedded:nli-sample"])
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
def test_mirror_dataset_split_is_found_by_name(tmp_path, name, file):
    (tmp_path / file).parent.mkdir(parents=True)
    pl.DataFrame({"text": PROSE}).write_parquet(tmp_path / f"{file}.parquet")
    (source,) = text_sources(ReadingConfig(), [name], mirror=str(tmp_path))
    assert (source.texts, source.files) == (("text",), (f"{tmp_path}/{file}.parquet",))


def test_date_and_list_columns_are_not_read(tmp_path):
    dates = [datetime(2026, 1, 1, tzinfo=UTC)] * 8
    rows = pl.DataFrame({"text": PROSE, "created_at": dates, "title": [["a", "b"]] * 8})
    rows.write_parquet(tmp_path / "reviews.parquet")
    source, table = found(tmp_path / "reviews.parquet")
    assert (source.summary["text"], source.summary["not read"]) == ("text", "created_at, title")
    assert table["text"].to_list() == PROSE


NO_TEXT = {
    "numbers.parquet": (pl.DataFrame({"n": [1, 2], "title": [["This"], ["has"]]}), "or write 'title' as strings"),
    "lists.parquet": (pl.DataFrame({"title": [["This"], ["has"]]}), "record. Write 'title' as strings"),
    "words.parquet": (pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "no text column in 'a', 'b'"),
    "nested.jsonl": (
        pl.DataFrame({"text": [PROSE] * 3, "number": 7}),
        r"no text column in 'text', 'number' \('text': values are not strings\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_TEXT)
def test_table_without_text_raises_source_error(tmp_path, name):
    rows, why = NO_TEXT[name]
    rows.write_ndjson(tmp_path / name) if name.endswith("jsonl") else rows.write_parquet(tmp_path / name)
    with pytest.raises(SourceError, match=why):
        text_sources(ReadingConfig(), [str(tmp_path / name)])


def test_lines_above_the_header_are_to_be_removed(tmp_path):
    """Regression: of the one row that fitted the comment, a text column was to be named."""
    path, header = tmp_path / "own.csv", "id,text\n"
    table = header + "".join(f'{number},"{text}"\n' for number, text in enumerate(PROSE))
    path.write_text(f"# exported by a tool\n# in 2024\n{table}")
    with pytest.raises(SourceError, match=r"line 3: 2 fields, expected 1.*and remove lines above the header"):
        text_sources(ReadingConfig(), [str(path)])
    path.write_text(table)
    assert text_sources(ReadingConfig(), [str(path)])[0].texts == ("text",)


def test_file_without_columns_or_with_a_named_column_of_lists_is_refused(tmp_path):
    for content, columns, why in (
        ({}, (), "no columns, expected one with text"),
        ({"text": [*PROSE], "number": 7}, ("text",), "field 'text' is a list, expected a string"),
    ):
        (tmp_path / "own.jsonl").write_text(f"{json.dumps(content)}\n" * 3)
        with pytest.raises(SourceError, match=why):
            text_sources(ReadingConfig(columns=columns), [str(tmp_path / "own.jsonl")])
