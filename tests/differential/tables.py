"""Tables of random rows, as pandas, Polars, csv, pyarrow, json and spreadsheets write them."""

import csv
import json
from dataclasses import dataclass

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

WORDS = (
    "the", "parcel", "came", "late", "and", "nobody", "answered", "my", "letter", "about", "a", "lost", "ticket", "for",
    "that", "concert", "in", "Paris",
)  # fmt: skip
MARKS = (
    '"', '""', '"quoted"', "'", "don't", "'tis'", ",", ";", "|", "#", "\\", "=1+1", "“so”", "’", "–", "€", "é", " ",
    "N/A",
)  # fmt: skip
BREAKS = ("\n", "\r\n", "\t", "\n\n")
PASTED = ("{0}\n{1}{s}{2}", "{0}{s}{1}\n{2}", "{0}{s}{1}\n{2}{s}x", "{0}{s}{1}\n{2}{s}{s}x\n{0}{s}y")
"""Rows pasted into one cell; of some tables, each line then has as many separators as a record."""
POOLS = (("refund", "delivery", "other"), ("0", "1"), ("1.5", "2"), ("NA", "EU"), ("é", "b"), ("a, b", 'c "d"', "e;f"))


@dataclass(frozen=True)
class Row:
    number: int
    text: str | None
    label: str | None


def rows_of(random, *, marks=True, breaks=True, pasted=0.0):
    """Draw rows; `pasted` is the share of texts that are rows of a table with tabs."""
    pool = random.choice(POOLS)
    often = random.choice((0.02, 0.2, 0.6))
    rows = []
    for number in range(random.choice((24, 40, 300))):
        words = [random.choice(WORDS) for _ in range(random.randint(5, 12))]
        if marks and random.random() < often:
            words.insert(random.randint(0, len(words)), random.choice(MARKS))
        if marks and random.random() < often / 3:
            words = ['"' + words[0], *words[1:-1], words[-1] + '"']
        text = " ".join(words)
        if breaks and random.random() < often / 3:
            text = text.replace(" ", random.choice(BREAKS), 1)
        if random.random() < pasted:
            text = random.choice(PASTED).format(*words, s="\t")
        label = pool[number % len(pool)]
        rows.append(Row(number, None if random.random() < 0.03 else text, None if random.random() < 0.04 else label))
    return rows


def frame_of(rows):
    return pl.DataFrame(
        {"id": [row.number for row in rows], "text": [row.text for row in rows], "label": [row.label for row in rows]},
        schema={"id": pl.Int64, "text": pl.String, "label": pl.String},
    )


def by_csv(rows, folder, random):
    """Write by Python's csv module in any dialect; `'` is the quote character only if it shows in the file."""
    separator, quote = random.choice(",;\t|"), random.choice('""\'')
    shows = (row for row in rows if row.text and "\n" not in row.text)  # lines of a cell may also be records
    if not any("'" in row.text or separator in row.text for row in shows):
        quote = '"'
    path = folder / ("rows.tsv" if separator == "\t" and random.random() < 0.7 else "rows.csv")
    with path.open("w", newline="", encoding=random.choice(("utf-8", "utf-8-sig", "utf-16"))) as file:
        style = random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
        end = random.choice(("\n", "\r\n"))
        writer = csv.writer(file, delimiter=separator, quotechar=quote, quoting=style, lineterminator=end)
        writer.writerow(("id", "text", "label"))
        writer.writerows((row.number, row.text or "", row.label or "") for row in rows)
    return path


def by_pandas(rows, folder, random):
    separator = random.choice(",;\t")
    path = folder / ("rows.tsv" if separator == "\t" else "rows.csv")
    table = pd.DataFrame({"text": [row.text for row in rows], "label": [row.label for row in rows]})
    style = random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
    encoding, index = random.choice(("utf-8", "utf-8-sig", "utf-16")), random.random() < 0.5
    table.to_csv(path, sep=separator, index=index, quoting=style, encoding=encoding)
    return path


def by_polars(rows, folder, random):
    separator = random.choice(",;\t|")
    path = folder / ("rows.tsv" if separator == "\t" else "rows.csv")
    style = random.choice(("necessary", "always", "non_numeric"))
    ends = {"line_terminator": random.choice(("\n", "\r\n")), "include_bom": random.random() < 0.3}
    frame_of(rows).write_csv(path, separator=separator, quote_style=style, **ends)
    return path


def by_pyarrow(rows, folder, random):
    """Write by pyarrow: Parquet, Arrow, CSV, or a folder of parts."""
    table = frame_of(rows).to_arrow()
    kind = random.choice(("parquet", "file", "stream", "csv", "parts", "dictionary"))
    if kind == "parts":
        target = folder / "parts"
        target.mkdir()
        for number in range(3):
            pq.write_table(table.slice(number * 10, 10 if number < 2 else None), target / f"{number}.parquet")
        return target
    path = folder / f"rows.{kind if kind in {'parquet', 'csv'} else 'parquet' if kind == 'dictionary' else 'arrow'}"
    if kind == "csv":
        pyarrow.csv.write_csv(table, path)
    elif kind == "dictionary":
        pq.write_table(table.set_column(2, "label", table["label"].dictionary_encode()), path)
    elif kind == "parquet":
        pq.write_table(table, path)
    else:
        with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(path, table.schema) as sink:
            sink.write_table(table)
    return path


def by_json(rows, folder, random):
    """Write JSON lines: keys late, missing, null, in any order, beside others; labels as strings or numbers."""
    style, path = random.choice(("pandas", "polars", "json", "missing")), folder / "rows.jsonl"
    frame = frame_of(rows)
    if style == "polars":
        frame.write_ndjson(path)
    elif style == "pandas":
        frame.to_pandas().to_json(path, orient="records", lines=True, force_ascii=random.random() < 0.5)
    else:
        lines = []
        late = random.randint(0, len(rows) // 2)
        for row in rows:
            label = row.label
            if label in {"0", "1"} and random.random() < 0.5:
                label = random.choice((int(label), float(label)))
            record = {"id": row.number, "text": row.text, "label": label}
            if style == "missing":
                record = {name: value for name, value in record.items() if value is not None}
            if row.number >= late and random.random() < 0.5:
                record["note"] = random.choice((None, 5, ["a"], {"b": 1}, "c"))
            items = list(record.items())
            random.shuffle(items)
            lines.append(json.dumps(dict(items), ensure_ascii=random.random() < 0.5))
        path.write_text("\n".join(lines) + random.choice(("", "\n", "\n\n")), encoding="utf-8")
    return path


def by_spreadsheet(rows, folder, random):
    """Write as spreadsheets export: sep=, blank names, BOM, CRLF, Windows-1252, UTF-16, tabs with quoted commas."""
    kind = random.choice(("sep", "blank", "tabs", "legacy", "unicode"))
    separator = "\t" if kind in {"tabs", "unicode"} else random.choice(",;")
    path = folder / ("rows.tsv" if separator == "\t" else "rows.csv")
    blanks = [""] * (3 if kind == "blank" else 0)

    def cell(value):
        text = "" if value is None else str(value)
        special = any(mark in text for mark in ('"', "\n", "\r", ",", separator))
        return '"' + text.replace('"', '""') + '"' if special else text

    table = [["id", "text", "label", *blanks], *([row.number, row.text, row.label, *blanks] for row in rows)]
    content = "".join(separator.join(map(cell, line)) + "\r\n" for line in table)
    if kind == "sep":
        content = f"sep={separator}\r\n{content}"
    encoding = {"legacy": "cp1252", "unicode": "utf-16"}.get(kind, random.choice(("utf-8", "utf-8-sig")))
    path.write_bytes(content.encode(encoding))
    return path


def by_hand(rows, folder, random):
    """Write TSV without quoting, as research datasets."""
    path = folder / "rows.tsv"
    table = [("id", "text", "label"), *((str(row.number), row.text or "", row.label or "") for row in rows)]
    end = random.choice(("\n", "\r\n"))
    path.write_bytes("".join("\t".join(line) + end for line in table).encode())
    return path


WRITERS = (by_csv, by_pandas, by_polars, by_pyarrow, by_json, by_spreadsheet, by_hand)
