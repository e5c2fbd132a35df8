"""Fuzz tests of all outside input: each input gives a clear error or a result, and no row is lost.

The short form runs in seconds. `BSL_FUZZ_INPUTS=100000` runs more inputs and `BSL_FUZZ_SEED=…` repeats a run; both
values are printed.
"""

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from bsl.storage.artifacts.garbage_collection import collectable
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import StorageError
from bsl.storage.filesystem.names import MANIFEST
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.formats import format_of, read_table
from bsl.storage.readers.read_report import ReadReport
from tests.hostile import folder_of, put
from tests.hostile_values import SEED, Draw, spoiled


@pytest.fixture
def draw(request, capsys):
    """Draw seeded random damage; print the seed and the number of inputs at the end."""
    made = Draw(f"{SEED} {request.node.name}")
    yield made
    told = f"BSL_FUZZ_SEED={SEED} {request.node.name}: {made.inputs:,} inputs, {dict(made.counts)}"
    with capsys.disabled():
        sys.stdout.write(f"\n  {told}\n")


BYTES = [
    b'"', b",", b"\t", b"\n", b"\r", b"\r\n", b"\\", b"{", b"}", b"[", b"]", b":", b"\x00", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\x78\x9c", b"x^", b"PK\x03\x04", b"null", b"true",
    b"-1e5", b"\\ud800", b"\\u0074", "é".encode(), "\u2028".encode(), b"text", b'"text"', b"a" * 300, b"", b" ",
]  # fmt: skip


def damaged(content: bytes, dice: random.Random) -> bytes:
    """Return the content with random bytes removed, inserted, replaced or repeated."""
    for _ in range(dice.choice([1, 1, 1, 2, 5, 20])):
        start = dice.randrange(len(content) + 1)
        length = dice.choice([0, 0, 1, 1, 2, 10, 200])
        inserted = dice.choice([*BYTES, bytes([dice.randrange(256)]), content[start : start + length] * 2])
        content = content[:start] + inserted + content[start + length :]
    return content


SENTENCES = ["A cat sits.", 'He said "no", twice.', "Zwei Sätze, ja.", "7", "true", "[a]", "x^2 + y", "tab\there", "猫"]


FILES = {
    "txt": "\n".join(SENTENCES),
    "jsonl": "".join(json.dumps({"text": text, "label": number}) + "\n" for number, text in enumerate(SENTENCES)),
    "csv": pl.DataFrame({"text": SENTENCES, "label": [*"012345678"]}).write_csv(),
    "tsv": "text\tlabel\n" + "".join(f"{text.replace(chr(9), ' ')}\t1\n" for text in SENTENCES),
}


@pytest.mark.parametrize("suffix", FILES)
def test_damaged_text_file_is_read_or_raises_storage_error(tmp_path, draw, suffix):
    """Every line of a text or JSON file is either read or counted as rejected."""
    path = tmp_path / f"a.{suffix}"
    for _ in draw.rounds(0.13):
        content = damaged(FILES[suffix].encode(), draw.dice)
        path.write_bytes(content)
        report = ReadReport("fuzz")
        frame = draw.tried(partial(table_of, path, report), StorageError)
        if frame is None:
            assert str(path) in draw.refusal
            continue
        assert frame.height == report.records
        assert frame["text"].null_count() == 0 or suffix in {"csv", "tsv"}
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if suffix == "jsonl":
            assert report.records + report.rejected == sum(bool(line.strip()) for line in lines), content
        if suffix == "txt":
            assert report.records + report.rejected == len(lines) - (lines[-1] == b""), content
            kept = [text.removesuffix("\r") for text in decodable(lines)]
            assert frame["text"].to_list() == kept[: frame.height], content


def decodable(lines: list[bytes]) -> list[str]:
    pairs = [(line, line.decode(errors="ignore")) for line in lines]
    return [text for line, text in pairs if text.encode() == line]


def table_of(path: Path, report: ReadReport, column: str = "text") -> pl.DataFrame:
    """Read one column of a file; an empty frame where the reader yields none."""
    frames = list(read_table(str(path), format_of(str(path)), Columns((column,)), report))
    return pl.concat([pl.DataFrame(schema={column: pl.String}), *frames])


def test_damaged_manifest_raises_storage_error_and_deletes_nothing(tmp_path, draw):
    """Nothing appears outside the store and the export, and no artifact is deleted."""
    room = tmp_path / "room"
    store = Store(str(room / "store"))
    ref, other = put(store, 1), put(store, 2)
    manifest = folder_of(store, ref) / MANIFEST
    whole = manifest.read_bytes()
    for number in draw.rounds(0.13):
        if draw.dice.random() < 0.3:
            manifest.write_bytes(damaged(whole, draw.dice))
        else:
            manifest.write_text(json.dumps(spoiled(json.loads(whole), draw.dice), ensure_ascii=True))
        for act in (
            lambda: store.check(ref),
            lambda: store.scan(ref).collect(),
            lambda to=f"{number}": store.export(ref, room / "out" / to),
            lambda: collectable(store, timedelta(0), datetime.now(UTC)),
        ):
            draw.tried(act, StorageError)
        assert store.defect(other) is None
        assert {path.name for path in tmp_path.iterdir()} == {"room"}
        assert {path.name for path in room.iterdir()} <= {"store", "out"}
