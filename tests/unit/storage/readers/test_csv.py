"""CSV and TSV files: quotes, separators, bad records, and whether the first line is a header."""

import re
import subprocess

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers import blocks
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.formats import columns_of
from bsl.storage.sources.own_text import text_sources
from bsl.storage.sources.read import check_columns
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.reading import table, texts, where

NUL = "\x00"
LINES = ["The cat sat on the mat.", "A dog ran over the meadow.", "Nobody was at home."]


def text_columns(path):
    return check_columns(resolve_source(SourceSpec(path=path)))


# tests/differential/test_tables.py draws tables of csv, pandas, Polars, spreadsheets, and TSV without quoting.
GOOD = {
    "a stray quote": ('id,text\n1,5" nails\n2,"6"" nails"\n3,a "b" c\n4,d\n', ['5" nails', '6" nails', 'a "b" c', "d"]),
    "NUL and a megabyte": (f"text,b\na{NUL}b,1\n{'x' * 1_000_000},2\nshort,\n", [f"a{NUL}b", "x" * 1_000_000, "short"]),
    "CSV with single quotes": ("a,text\n1,'it''s, so'\n2,x\n", ["it's, so", "x"]),
    "apostrophes around words": ("a,text\n1,'one'\n2,'two'\n", ["'one'", "'two'"]),
    "quotations with commas in TSV": ('a\ttext\n1\t"Yes, so."\n2\tHi, all\n', ['"Yes, so."', "Hi, all"]),
    "a quotation with a comma and inches in TSV": ('a\ttext\n1\t"Yes, so."\n2\t6" nails\n', ['"Yes, so."', '6" nails']),
    "a tab in quotes and inches in TSV": ('a\ttext\n1\t"a\tb"\n2\t6" nails\n', ["a\tb", '6" nails']),
    "an empty string in TSV": ('a\ttext\n1\t""\n2\tplain\n3\t"say ""x"""\n', ["", "plain", 'say "x"']),
    "a column in quotes in TSV": ('a\ttext\n1\t"one"\n2\t"two"\n', ["one", "two"]),
    "apostrophes beside quoted fields": (
        "a;text;b\n1;' so;0\n2;\"two\nlines\";1\n3;for ';1\n4;x;0\n",
        ["' so", "two\nlines", "for '", "x"],
    ),
    "commas in a header": ("id;title, short;text\n1;a;x\n2;b;y, z\n", ["x", "y, z"]),
    "ten lines like records in one of quoted fields": (
        '"a","text"\n' + '"x","' + "p, q\n" * 10 + 'r, s"\n"y","two"\n',
        ["p, q\n" * 10 + "r, s", "two"],
    ),
    "lines like records in one cell of a column in quotes in TSV": (
        'a\ttext\n1\t"one"\n2\t"Sizes:\nM\t12"\n3\t"two"\n',
        ["one", "Sizes:\nM\t12", "two"],
    ),
    "lines like records in one cell beside another with a tab in TSV": (
        'a\ttext\n1\tone\n2\t"Sizes:\nM\t12"\n3\t"two\t2"\n',
        ["one", "Sizes:\nM\t12", "two\t2"],
    ),
    "a quotation over two records of TSV with inches": (
        'a\ttext\n1\t"Go away.\n2\tI stay."\n3\t6" nails\n',
        ['"Go away.', 'I stay."', '6" nails'],
    ),
    "a few words in quotes, one of them before others, in TSV": (
        'a\ttext\n1\t"one"\n2\t"two" he said\n3\t"three"\n',
        ['"one"', '"two" he said', '"three"'],
    ),
    "lines of one text": (
        'id,text\n1,"one, two\nthree, four\nfive, six"\n2,seven\n',
        ["one, two\nthree, four\nfive, six", "seven"],
    ),
}


@pytest.mark.parametrize(("content", "read"), GOOD.values(), ids=GOOD)
def test_unusual_csv_records_are_read(write, report, content, read):
    assert texts(write("a.tsv" if "\t" in content else "a.csv", content), report) == read
    assert report.rejected == 0


def test_tsv_with_both_kinds_of_quotes_or_no_tab_is_refused_and_the_remedies_work(write, tmp_path, report):
    path = write("a.tsv", 'a\ttext\r\n1\t"say ""x"""\r\n2\t6" nails\r\n')
    with pytest.raises(SourceError, match=r"line 2 has a field in quotes .* but line 3 has a quote inside") as refusal:
        texts(path, report)
    commands = re.findall(r"`([^`]+)`", str(refusal.value))
    for command, read in zip(commands, (['say "x"', '6" nails'], ['"say ""x"""', '6" nails']), strict=True):
        subprocess.run(command, shell=True, check=True)
        assert texts(str(tmp_path / "a.quoted.csv"), report) == read
    with pytest.raises(SourceError, match=r"no line has a tab, but all have equally many fields by ','.*`mv "):
        texts(write("b.tsv", "id,text\n1,one\n2,two\n"), report)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ('1\tone\n2\t"Sizes:\nM\t12"\n3\ttwo\n', "line 3 begins a record of several lines, each of which is a record"),
        ('1\t"Go.\n2\tI stay."\n3\t6" nails\n4\t"so\nit"\n', "line 5 has a field in quotes .* but line 4 has a quote"),
        (
            '1\t"so ""he"" said" I\n' + '2\t"one"\n' * 20,
            "line 3 has a field in quotes, .* but line 2 cannot",
        ),
    ],
)
def test_tsv_that_may_be_quoted_or_not_is_refused(write, report, rows, why):
    with pytest.raises(SourceError, match=why):
        texts(write("a.tsv", f"a\ttext\n{rows}"), report)


def test_a_bad_record_does_not_change_how_others_are_read_if_all_names_are_quoted(write, report):
    path = write("a.tsv", '"a"\t"text"\n' + '"1"\t"one"\n' * 20 + '"2"\t"two" and\n')
    assert texts(path, report) == ["one"] * 20
    assert where(report) == [(22, "text follows a closing quote")]


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        ("text\nOne, two, three.\nFour.\n", "quotes around texts .* rename the file to .txt"),
        ("text,label\nOne, two, three.,1\nFour.,0\n", "quotes around texts .* or write the file again"),
        ("text,label\nOne\nTwo,1\n", "Correct them, name the right columns"),
        ("text\n" + "One, two.\nThree, four, five.\n" * 4, "quotes around texts .* rename the file to .txt"),
        ("text,label\n" + "One, two,1\nThree, four, five,1\n" * 4, "^(?!.*row.names).* or write the file again"),
        ("text,label\n" + "1,One,0\n2,Two,1\n" * 4, "row.names = FALSE, or begin the header"),
    ],
)
def test_remedy_for_a_wrong_number_of_fields_fits_the_file(write, report, content, remedy):
    texts(write("a.csv", content), report)
    with pytest.raises(SourceError, match=remedy):
        report.check(0.0)


BAD = {
    "a carriage return within a line": (
        b"text,b\none\rtwo,1\r\nthree,2\r\nbad\n",
        ["one\rtwo", "three"],
        [(4, "1 fields, expected 2")],
    ),
    "width and encoding": (
        b'a,text\n1,one\n2\n3,"two\nlines"\n4,x,y\n\n5,bad \xff\n6,six 6" pipe\n',
        ["one", "two\nlines", 'six 6" pipe'],
        [(3, "1 fields, expected 2"), (6, "3 fields, expected 2"), (8, "not UTF-8")],
    ),
    "text after a quote": (
        b'id,text\n1,one\n2,"two" and "half\n3,three\n4,"four ""4"", ""x"""\n5,five\n',
        ["one", "three", 'four "4", "x"', "five"],
        [(3, "text follows a closing quote")],
    ),
    "single quotes beside an apostrophe": (
        b"a,text\n1,don't\n2,'a, b'\n3,x\n",
        ["don't", "x"],
        [(3, "3 fields, expected 2")],
    ),
    # In the last column, such a record would have the right number of fields.
    "an open quote": (
        b'id,text\n1,one\n2,"two\n3,three\n',
        ["one", "three"],
        [(3, "it takes in the records up to line 4, because a quote is not closed")],
    ),
    "an open quote closed much later": (
        b'id,text\n1,"one\n' + b"2,x\n" * 9 + b'3,three"\n4,four\n',
        ["x"] * 9 + ['three"', "four"],
        [(2, "it takes in the records up to line 12, because a quote is not closed")],
    ),
    "an open quote among other lines": (
        b'id,text\n1,one\n2,"two\nlines\n3,three\n',
        ["one"],
        [(3, "one record spans 3 lines, probably because a quote is not closed")],
    ),
}


@pytest.mark.parametrize(("content", "read", "bad"), BAD.values(), ids=BAD)
def test_bad_csv_records_are_counted_with_their_line_numbers(write, report, content, read, bad):
    assert texts(write("a.csv", content), report) == read
    assert where(report) == bad


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty, expected a header"),
        (b"\na,b\n", "line 1 is blank"),
        (b"a,b\r1,2\r3,4\r", "the header contains a carriage return"),
        (b"a,a\n1,2\n", "has a column twice"),
        (b"\xff\n", "header is not UTF-8"),
        (b'id,"text\n1,one\n', "the header cannot be read"),
        (b'"id" x,text\n1,one\n', "the header cannot be read"),
    ],
)
def test_csv_without_a_usable_header_raises_source_error(write, content, message):
    with pytest.raises(SourceError, match=message):
        columns_of(write("a.csv", content), "csv")


@pytest.mark.parametrize(("suffix", "separator"), [("csv", ","), ("csv", ";"), ("tsv", "\t")])
@pytest.mark.parametrize("block_bytes", [1, 7, 40, 1 << 20])
def test_records_do_not_depend_on_block_size(write, report, monkeypatch, block_bytes, suffix, separator):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    rows = [(f'text, {number}; "q"\nsecond line', f"b{number}") for number in range(30)]
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    path = write(f"a.{suffix}", frame.write_csv(separator=separator))
    assert table(path, Columns(("a", "b")), report).rows() == rows


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ('"id","review; text; more"', ("id", "review; text; more")),
        ("id,a;b", ("id", "a;b")),
        ("id,a;text\n1,x;one\n2,y;two", ("id", "a;text")),
        ('"a;b"', ("a;b",)),
        ("text\t", ("text",)),
        ("\ttext\tstars", ("", "text", "stars")),
        ("id;a|b;c", ("id", "a|b", "c")),
    ],
)
def test_delimiter_of_csv_ignores_quoted_text_and_prefers_commas_and_that_of_tsv_is_a_tab(write, header, names):
    assert columns_of(write("a.csv", f"{header}\n"), "csv") == names
    assert columns_of(write("a.tsv", "a;b\n"), "tsv") == ("a;b",)


ROWS = [f"{n},{LINES[n % 3]},{'good' if n % 2 else 'bad'},2024-01-0{n}" for n in range(9)]


PROSE = (
    r".* looks like text, expected a column name such as 'text'\. Add a header line, or give the file the suffix \.txt"
    r".*\. If line 1 is the header, name the text column with `--columns` \(embed, search"
)
NO_HEADER = {
    # Each of these lines would be taken as a column name, and the first sentence lost.
    **{
        f"{line[:20]} ({suffix})": (suffix, [line, *LINES], PROSE)
        for suffix in ("csv", "tsv")
        for line in (LINES[0], "ist das so?", "Nein!", "彼は家にいた。", "he went home and slept", "x" * 50)
    },
    "a number": ("csv", ["0,it beats apple on…,1,2024-01-01", *ROWS], "'0' is a number or a date, .*Add a header line"),
    "a text": (
        "csv",
        ["a,it beats apple on…,1,2024-01-01", *ROWS],
        "'it beats apple on…' looks like text, .*Add a header line",
    ),
    "a value": ("csv", ["a,apple,good,x", *ROWS], "'good' is also a value in its column, .*Add a header line"),
    "a date": ("csv", ["a,apple,x,2024-01-01", *ROWS], "'2024-01-01' is a number or a date, .*Add a header line"),
    "decimals": ("csv", ["a,apple,x,4.5", *ROWS], "'4.5' is a number or a date, .*Add a header line"),
}


@pytest.mark.parametrize(("suffix", "lines", "why"), NO_HEADER.values(), ids=NO_HEADER)
def test_both_readers_refuse_a_first_line_of_data_as_header(write, suffix, lines, why):
    path = write(f"a.{suffix}", "\n".join(lines))
    for read in (
        lambda: text_columns(path),
        lambda: text_sources(ReadingConfig(), [path]),
    ):
        with pytest.raises(SourceError, match=rf"line 1 should be a header, but {why}"):
            read()


LABELLED = [f"{line},good" for line in LINES]
HEADERS = {
    **{name: ("csv", [name, *LINES], name) for name in ("satz", "Review text", "0", "Comment of the guest")},
    **{
        header: ("csv", [header, *(f"{n},{line}" for n, line in enumerate(LABELLED))], header.split(",")[1])
        for header in (",0,1", "0,1,2", ",text,label")  # as pandas names columns by default
    },
    "repeated": ("csv", ["Review,Mood", *LABELLED, "Review,Mood", *LABELLED], "Review"),
    "a JSON key": ("jsonl", [f'{{"What did you like?": "{LINES[0]}"}}'], "What did you like?"),
}


@pytest.mark.parametrize(("suffix", "lines", "name"), HEADERS.values(), ids=HEADERS)
def test_unusual_header_names_the_text_column(write, suffix, lines, name):
    path = write(f"a.{suffix}", "\n".join(lines))
    assert text_columns(path) == text_sources(ReadingConfig(), [path])[0].texts == (name,)
