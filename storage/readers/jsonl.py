"""Read JSON lines: one object per line.

Polars parses a whole block but does not name a bad line, and it turns numbers and lists into strings. So a block that
fails or looks suspicious is halved until the bad lines are in a small piece, which is parsed line by line. Valid lines
give the same result in both parsers, so the halving does not affect the result.
"""

from __future__ import annotations

import codecs
import json
import re
import shlex
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from bsl.storage.errors import SourceError
from bsl.storage.readers.blocks import Block, line_blocks, open_bytes
from bsl.storage.readers.encodings import marked_encoding, utf8_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bsl.storage.readers.columns import Columns
    from bsl.storage.readers.read_report import ReadReport

NESTED: Final = pa.list_(pa.null())
_PIECE_BYTES: Final = 32 << 10
_KEY_OBJECTS: Final = 100  # first objects, which are all parsed to find the types of keys
_PEEK_BYTES: Final = 1 << 20
_KEY: Final = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*:')  # or the end of a text, which does no harm
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{}:]', re.DOTALL)  # the last string of a text may have no end
_DEPTH: Final = {"{": 1, "[": 1, "}": -1, "]": -1}
_UNPACK: Final = {".gz": "gzip -dc <", ".zst": "zstd -dc <", ".zip": "unzip -p"}
_NOT_A_STRING: Final = r"(?s)^(-?[0-9][0-9.eE+-]*|true|false|\[.*\]|\{.*\})$"
_ESCAPE_IN_KEY: Final = re.compile(rb'\\[^"\\]*"\s*:')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LIKE_COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""First bytes that Polars mistakes for compressed data; `x^` is among them."""
_NUL: Final = "\x00"  # Polars replaces half a surrogate pair by this character


def schema(path: str, *, encoding: str | None = None, until: Sequence[str] = ()) -> pa.Schema:
    """Return the keys of all objects, without those that are not Unicode text.

    The type of a key is `NESTED` if the values that were parsed are lists or objects, else a string. All of the first
    objects are parsed, and later ones if they have a new key.

    Args:
        path: the file.
        encoding: encoding of the file if it is not UTF-8.
        until: stop when these keys are found.

    Raises:
        SourceError: no line is a JSON object; the message says how to convert an array of objects.
    """
    plain: dict[str, bool] = {}
    known: set[bytes] = set()
    objects = 0
    for block in line_blocks(path, None, _PEEK_BYTES, encoding=encoding):
        for _, line in _numbered(block):
            if objects >= _KEY_OBJECTS and known.issuperset(_KEY.findall(line)):
                continue
            try:
                found = _parse(line)
            except ValueError:
                continue
            known.update(_KEY.findall(line))
            for name, value in found.items():
                if not _SURROGATE.search(name):
                    plain[name] = plain.get(name, False) or not isinstance(value, list | dict)
            objects += 1
        if until and plain.keys() >= set(until):
            return _typed(plain)
    if not objects:
        raise SourceError(
            f"{path}: no line is a JSON object, expected JSON lines. "
            f"{remedy(path, f'{PurePosixPath(path).stem}.lines.jsonl')}"
        )
    return _typed(plain)


def remedy(path: str, target: str) -> str:
    """Return what to do about JSON that is not read as lines, by its beginning: perhaps a command that writes `target`.

    Raises:
        SourceError: as for `open_bytes`.
    """
    with open_bytes(path) as (stream, _):
        head = stream.read(_PEEK_BYTES)
    try:
        beginning = codecs.getincrementaldecoder(marked_encoding(head) or "utf-8-sig")().decode(head).lstrip()
    except UnicodeDecodeError:
        name = shlex.quote(path)
        return (
            f"It is not UTF-8. Find its encoding (`file -i {name}`), and convert it (`iconv -f ENCODING -t utf-8 "
            f"{name} > {utf8_name(path)}`)."
        )
    if _is_lines(beginning):
        packed = PurePosixPath(path).suffix
        return f"Its lines are objects: rename it to {target}{packed if packed.lower() in _UNPACK else ''}."
    keys = _array_keys(beginning)
    if keys is None or "://" in path:
        return "Write an object with the text on each line, or save the texts as .csv."
    return f"Write the objects of its array as lines: {as_lines(path, target, *keys)}."


def _is_lines(beginning: str) -> bool:
    first, _, others = beginning.partition("\n")
    try:
        return isinstance(json.loads(first), dict) and bool(others.strip())
    except (ValueError, RecursionError):
        return False


def _array_keys(beginning: str) -> tuple[str, ...] | None:
    """Return () for an array of objects, for an object its first key with such an array; None for other JSON."""
    tokens = _TOKEN.findall(beginning) if beginning.startswith(("[", "{")) else []
    if tokens[:2] == ["[", "{"]:
        return ()
    depth = 0
    for token, *others in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if depth == 1 and others == [":", "[", "{"]:
            try:
                return (json.loads(token),)
            except ValueError:
                return None
        depth += _DEPTH.get(token, 0)
    return None


def as_lines(path: str, target: str, key: str | None = None) -> str:
    """Return a shell command that converts a JSON array of objects, or that of a key, to JSON lines, by this Python."""
    array = "json.load(sys.stdin.buffer)" + ("" if key is None else "[sys.argv[1]]")
    program = f"import json, sys; print(*map(json.dumps, {array}), sep='\\n')"
    python = shlex.join([sys.executable, "-c"]) + f' "{program}"' + ("" if key is None else f" {shlex.quote(key)}")
    unpack = _UNPACK.get(PurePosixPath(path).suffix.lower(), "cat <")
    return f"`{unpack} {shlex.quote(path)} | {python} > {shlex.quote(target)}`"


def _typed(plain: Mapping[str, bool]) -> pa.Schema:
    return pa.schema([(name, pa.string() if is_plain else NESTED) for name, is_plain in plain.items()])


def read(path: str, requested: Columns, report: ReadReport, *, encoding: str | None = None) -> Iterator[pl.DataFrame]:
    """Yield frames of the requested columns, all strings; null where a key is absent.

    Lines that are not UTF-8 or not a JSON object are rejected, and objects with another value than a string or null in
    a text column. Blank lines are skipped.
    """
    for block in line_blocks(path, report, encoding=encoding):
        frame = pl.concat(_pieces(block, path, requested, report))
        report.records += frame.height
        yield frame


def first_nested(path: str, names: Sequence[str], *, encoding: str | None = None) -> tuple[int, str, str] | None:
    """Return line, key and kind of the first value of these keys that is a list or an object; None without one."""
    for block in line_blocks(path, None, encoding=encoding):
        for number, line in _numbered(block):
            try:
                record = _parse(line)
            except ValueError:  # `read` rejects the line
                continue
            for name in names:
                if isinstance(record.get(name), list | dict):
                    return number, name, _kind(record[name])
    return None


def _pieces(block: Block, path: str, requested: Columns, report: ReadReport) -> list[pl.DataFrame]:
    frame = _fast(block.content, requested)
    if frame is not None:
        return [frame]
    middle = block.content.find(b"\n", len(block.content) // 2) + 1
    if len(block.content) <= _PIECE_BYTES or middle in {0, len(block.content)}:
        return [_slow(block, path, requested, report)]
    head, tail = block.content[:middle], block.content[middle:]
    second = Block(tail, block.first_line + head.count(b"\n"))
    return [
        *_pieces(Block(head, block.first_line), path, requested, report),
        *_pieces(second, path, requested, report),
    ]


def _fast(content: bytes, requested: Columns) -> pl.DataFrame | None:
    """Parse a block by Polars; None if a line of it must be parsed by `json`."""
    if content.startswith(_LIKE_COMPRESSED):
        return None
    try:
        frame = pl.read_ndjson(content, schema=_schema(requested))
    except pl.exceptions.PolarsError:  # `_slow` finds the reason
        return None
    suspect = [pl.col(name).str.contains(_NUL, literal=True).any() for name in requested.names]
    if frame.select(pl.any_horizontal(pl.lit(False), *suspect)).item():
        return None
    return None if _has_non_strings(frame, content, requested) else frame


def _has_non_strings(frame: pl.DataFrame, content: bytes, requested: Columns) -> bool:
    """Return whether a text may be a number, a list … in the source; the raw bytes decide, because "7" is a string.

    If a key contains escapes, return True, so that the lines are parsed by `json`.
    """
    suspects = [name for name in requested.texts if frame.select(pl.col(name).str.contains(_NOT_A_STRING).any()).item()]
    if not suspects:
        return False
    keys = [re.escape(json.dumps(name, ensure_ascii=False).encode()) for name in suspects]
    return _ESCAPE_IN_KEY.search(content) is not None or any(
        re.search(rb'%s\s*:\s*[^"\s]' % key, content) for key in keys
    )


def _slow(block: Block, path: str, requested: Columns, report: ReadReport) -> pl.DataFrame:
    rows = []
    for number, line in _numbered(block):
        try:
            record = _parse(line)
            texts = [_text(record, name) for name in requested.texts]
            rows.append((*texts, *(_other(record, name) for name in requested.names[len(texts) :])))
        except ValueError as error:
            report.reject(path, number, str(error), line)
    return pl.DataFrame(rows, schema=_schema(requested), orient="row")


def _numbered(block: Block) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(block.content.split(b"\n"), block.first_line):
        if line.strip():
            yield number, line


def _first_wins(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Build an object in which the first value of a repeated key wins, as in Polars."""
    record: dict[str, object] = {}
    for name, value in pairs:
        record.setdefault(name, value)
    return record


# `strict=False` accepts raw control characters in strings, NUL included; normalisation removes them later.
_DECODER: Final = json.JSONDecoder(strict=False, object_pairs_hook=_first_wins)


def _parse(line: bytes) -> dict[str, object]:
    try:
        value = _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 ({error.reason} at byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at character {error.pos})") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"{_kind(value)}, expected an object")  # noqa: TRY004 - one kind of error here
    return value


def _text(record: dict[str, object], name: str) -> str | None:
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"field {name!r} is {_kind(value)}, expected a string")  # noqa: TRY004 - one kind of error here
    return _encodable(name, value)


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object", str: "a string"}
    return names.get(type(value), "null")


def _other(record: dict[str, object], name: str) -> str | None:
    """Return a label or score as Polars writes it (1.0 as 1), so that both parsers agree."""
    value = record.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _encodable(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _encodable(name: str, text: str) -> str:
    if _SURROGATE.search(text):
        raise ValueError(f"field {name!r} contains half a surrogate pair")
    return text


def _schema(requested: Columns) -> dict[str, type[pl.String]]:
    return dict.fromkeys(requested.names, pl.String)
