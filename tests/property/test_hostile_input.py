"""Fuzz tests of outside input: each input gives a clear error or a result, and no row is lost.

`BSL_FUZZ_INPUTS` is the number of inputs of each test; `BSL_FUZZ_SEED` draws other ones.
"""

import contextlib
import json
import os
import random
from datetime import UTC, datetime, timedelta

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

# Read at import: the shared fixture removes these variables from tests.
INPUTS, SEED = int(os.environ.get("BSL_FUZZ_INPUTS", "60")), os.environ.get("BSL_FUZZ_SEED", "1")
BYTES = [
    b'"', b",", b"\t", b"\n", b"\r", b"\r\n", b"\\", b"{", b"}", b"[", b"]", b":", b"\x00", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\x78\x9c", b"x^", b"PK\x03\x04", b"null", b"true",
    b"-1e5", b"\\ud800", b"\\u0074", "é".encode(), "\u2028".encode(), b"text", b'"text"', b"a" * 300, b"", b" ",
]  # fmt: skip


VALUES = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.0, -0.0, 1e308, float("inf"), float("nan"),
    1e-320, "", " ", "x", "é", "\x00", "\ud800", "a\nb", "../..", "/etc/passwd", "x" * 5000, "Infinity", "[/]", "<b>",
    "%s", "{}", [], {}, [[]], [None], {"": ""}, {"a": {"b": {"c": []}}}, ["x", "x"], [1, "a", None],
]  # fmt: skip


def rounds(name):
    dice = random.Random(f"{SEED} {name}")
    for number in range(INPUTS):
        yield number, dice


def damaged(content, dice):
    """Return the content with random bytes removed, inserted, replaced or repeated."""
    for _ in range(dice.choice([1, 1, 1, 2, 5, 20])):
        start = dice.randrange(len(content) + 1)
        length = dice.choice([0, 0, 1, 1, 2, 10, 200])
        inserted = dice.choice([*BYTES, bytes([dice.randrange(256)]), content[start : start + length] * 2])
        content = content[:start] + inserted + content[start + length :]
    return content


def spoiled(value, dice):
    """Return a JSON value with a random part replaced, removed or added."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        name = dice.choice(list(value))
        rest = dict(value)
        match dice.randrange(6):
            case 0:
                del rest[name]
            case 1:
                rest[str(dice.choice(["surprise", "../x", "a\0", "x" * 3000, ""]))] = rest[name]
            case _:
                rest[name] = spoiled(rest[name], dice)
        return rest
    if isinstance(value, list) and value and dice.random() < 0.7:
        place = dice.randrange(len(value))
        return [*value[:place], spoiled(value[place], dice), *value[place + 1 :]]
    return dice.choice(VALUES)


SENTENCES = ["A cat sits.", 'He said "no", twice.', "Zwei Sätze, ja.", "7", "true", "[a]", "x^2 + y", "tab\there", "猫"]
FILES = {
    "txt": "\n".join(SENTENCES),
    "jsonl": "".join(json.dumps({"text": text, "label": number}) + "\n" for number, text in enumerate(SENTENCES)),
    "csv": pl.DataFrame({"text": SENTENCES, "label": [*"012345678"]}).write_csv(),
    "tsv": "text\tlabel\n" + "".join(f"{text.replace(chr(9), ' ')}\t1\n" for text in SENTENCES),
}


def read(path, report):
    """Return the texts, or the error message."""
    try:
        frames = list(read_table(path, format_of(path), Columns(("text",)), report))
    except StorageError as error:
        return str(error)
    return pl.concat([pl.DataFrame(schema={"text": pl.String}), *frames])["text"]


@pytest.mark.parametrize("suffix", FILES)
def test_damaged_text_file_is_read_or_raises_storage_error(tmp_path, suffix):
    """Every line of a text or JSON file is either read or counted as rejected."""
    path = str(tmp_path / f"a.{suffix}")
    for _, dice in rounds(suffix):
        content = damaged(FILES[suffix].encode(), dice)
        (tmp_path / f"a.{suffix}").write_bytes(content)
        report = ReadReport("fuzz")
        texts = read(path, report)
        if isinstance(texts, str):
            assert path in texts
            continue
        assert len(texts) == report.records
        assert texts.null_count() == 0 or suffix in {"csv", "tsv"}
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if suffix == "jsonl":
            assert report.records + report.rejected == sum(bool(line.strip()) for line in lines), content
        if suffix == "txt":
            assert report.records + report.rejected == len(lines) - (lines[-1] == b""), content
            decoded = [(line, line.decode(errors="ignore")) for line in lines]
            kept = [text.removesuffix("\r") for line, text in decoded if text.encode() == line]
            assert texts.to_list() == kept[: len(texts)], content


def test_damaged_manifest_raises_storage_error_and_deletes_nothing(tmp_path):
    """Nothing appears outside the store and the export, and no artifact is deleted."""
    room = tmp_path / "room"
    store = Store(str(room / "store"))
    ref, other = put(store, 1), put(store, 2)
    manifest = folder_of(store, ref) / MANIFEST
    whole = manifest.read_bytes()
    for number, dice in rounds("manifest"):
        if dice.random() < 0.3:
            manifest.write_bytes(damaged(whole, dice))
        else:
            manifest.write_text(json.dumps(spoiled(json.loads(whole), dice), ensure_ascii=True))
        for act in (
            lambda: store.check(ref),
            lambda: store.scan(ref).collect(),
            lambda to=f"{number}": store.export(ref, room / "out" / to),
            lambda: collectable(store, timedelta(0), datetime.now(UTC)),
        ):
            with contextlib.suppress(StorageError):
                act()
        assert store.defect(other) is None
        assert {path.name for path in tmp_path.iterdir()} == {"room"}
        assert {path.name for path in room.iterdir()} <= {"store", "out"}
