"""The same rows in every form give the same texts and labels, or a refusal whose remedy works.

The rows of a case depend only on its number.
"""

import re
import subprocess
from pathlib import Path
from random import Random

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers.encodings import is_utf8
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.labels import label_source, read_labels
from bsl.storage.sources.own_text import records, text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from tests.differential.cases import FIRST, count
from tests.differential.tables import WRITERS, by_csv, by_hand, by_pandas, by_polars, by_spreadsheet, rows_of

pytestmark = pytest.mark.differential

CASES = range(FIRST, FIRST + count(105) // len(WRITERS))
COMMAND = re.compile(r"`((?:cp|mv|sed|iconv) [^`]+)`")
ENCODING = re.compile(r"`ingest.sources\[\].encoding`\): ([\w-]+)")


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_rows_are_read_as_written_or_refused_with_a_remedy_that_works(writer, tmp_path):
    check(writer, tmp_path)


@pytest.mark.parametrize("writer", [by_csv, by_pandas, by_polars], ids=lambda writer: writer.__name__)
def test_cells_with_pasted_rows_are_read_as_written_or_refused(writer, tmp_path):
    check(writer, tmp_path, pasted=0.1)


def check(writer, tmp_path, **drawn):
    for case in CASES:
        random, folder = Random(f"{writer.__name__} {case}"), tmp_path / str(case)
        folder.mkdir()
        rows = rows_of(random, breaks=writer is not by_hand, **drawn)
        path = str(writer(rows, folder, random))
        names, refusal = [path], ""
        try:
            read(path)
        except SourceError as error:
            refusal = str(error)
            names = remedied(refusal, path, folder, is_plain=writer is by_hand)
        for name in names:
            assert read(name) == expected(rows), f"case {case}: {name} {refusal}"


def read(name):
    labels = read_labels(label_source(name)).select("text_1", "label").rows()
    path, _, encoding = name.partition("#encoding=")
    texts = []
    for source in text_sources(ReadingConfig(encoding=encoding or None), [path]):
        report = ReadReport(path)
        texts += [text for table in records(source, report) for text in table["text"]]
        report.check(0.0)
    return [(text, number_or(label)) for text, label in labels], [text.strip() for text in texts]


def expected(rows):
    words = [row.label for row in rows if row.text and row.label]
    known = [row for row in rows if row.text and row.label and not (row.label == "NA" and words.count("NA") == 1)]
    return (
        [(str(row.text).strip(), number_or(str(row.label))) for row in known],
        [(row.text or "").strip() for row in rows],
    )


def number_or(label):
    try:
        return f"{float(label):g}"
    except ValueError:
        return label


def remedied(message, path, folder, *, is_plain):
    """Carry out the remedies of a message; return the names of what to read then."""
    assert path in message
    encodings = ENCODING.findall(message)
    assert bool(encodings) == ("iconv" in message)
    names = [f"{path}#encoding={encoding}" for encoding in encodings]
    commands = COMMAND.findall(message)
    assert commands, f"no remedy in: {message}"
    if len(commands) == 2:  # two readings are possible, and only the writer knows which is right
        commands = commands[1:] if is_plain else commands[:1]
    for command in commands:
        before = set(folder.iterdir())
        subprocess.run(command, shell=True, check=True, cwd=folder)
        (made,) = set(folder.iterdir()) - before
        assert made.suffix == Path(path).suffix or not encodings
        names.append(str(made))
    return names


def test_a_refusal_names_the_line(tmp_path):
    for case in CASES:
        random, folder = Random(f"damaged {case}"), tmp_path / str(case)
        folder.mkdir()
        rows = rows_of(random, marks=False, breaks=False)[:40]  # of more rows, one may be damaged
        path = by_spreadsheet(rows, folder, random)
        if b"\0" in path.read_bytes() or not is_utf8([path.read_bytes()]):
            continue  # every line would be refused
        lines = path.read_bytes().split(b"\r\n")
        place = random.randint(2, len(lines) - 2)
        lines[place] = random.choice((b"one field", lines[place] + b",;\tx", b"\x81\x8d" + lines[place]))
        path.write_bytes(b"\r\n".join(lines))
        with pytest.raises(SourceError, match=rf"line {place + 1}\b"):
            label_source(str(path))


def test_sentences_of_a_text_file_are_read_as_written(tmp_path):
    for case in CASES:
        random = Random(f"lines {case}")
        texts = [f"{row.text}." for row in rows_of(random, breaks=False) if row.text]
        path = tmp_path / f"{case}.txt"
        path.write_bytes(random.choice(("\n", "\r\n")).join(texts).encode(random.choice(("utf-8-sig", "utf-16"))))
        (source,) = text_sources(ReadingConfig(), [str(path)])
        read = pl.concat(list(records(source, ReadReport("lines"))))["text"].to_list()
        assert read == texts, f"case {case}"
