"""Read a file in blocks of whole lines, from any file system, decompressed."""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import stat
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, NamedTuple, cast

import fsspec
import pyarrow as pa

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.names import kind_of
from bsl.storage.readers.encodings import (
    MOVE_OLD,
    NAME_ENCODING,
    encoding_to_use,
    is_utf8,
    marked_encoding,
    shell_name,
    unmarked_wide,
    utf8_name,
)
from bsl.storage.readers.unpacked import bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.storage.readers.read_report import ReadReport

BLOCK_BYTES: Final = 16 << 20  # the parsed frame needs about as much memory; 64 MiB was no faster
MAX_LINE_BYTES: Final = 64 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAVE: Final = "Save a spreadsheet as .csv (CSV UTF-8), and a document as .txt."
_PACKED: Final = {
    b"\x1f\x8b": ("gzip", "Unpack it, or if it is compressed once, add .gz to its name."),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "Unpack it, or if it is compressed once, add .zst to its name."),
    b"\x78\x9c": ("zlib", "Unpack it."),
    b"\x78\xda": ("zlib", "Unpack it."),
    b"\xfd7zXZ\x00": ("xz", "Unpack it."),
    **dict.fromkeys((b"BZh%d1AY" % level for level in range(1, 10)), ("bzip2", "Unpack it.")),
    b"PK\x03\x04": (
        "zip, spreadsheet or Word",
        f"{_SAVE} Unpack an archive, or if it has one file, add .zip to its name.",
    ),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("old Excel or Word", _SAVE),
    b"%PDF-": ("PDF", "Save its text as .txt."),
    b"{\\rtf1": ("RTF", "Save its text as .txt."),
    b"SQLite format 3\0": ("SQLite", "Write the table with the texts as .csv."),
    b"PAR1": ("Parquet", "Unpack it, if it is compressed, and rename it: its suffix is .parquet."),
    b"ARROW1\0\0": ("Arrow", "Unpack it, if it is compressed, and rename it: its suffix is .arrow."),
}
"""First bytes of a file that is no text → its format, and what to do."""
_MIN_PEEK_BYTES: Final = 4096  # to recognise an encoding


class Block(NamedTuple):
    """Complete lines, each ending in a line feed except perhaps the last of the file."""

    content: bytes
    first_line: int  # its 1-based number


@contextmanager
def open_bytes(path: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open any fsspec address for reading.

    Yields:
        The content, decompressed by the suffix (`.gz`, `.zst`, `.zip` with one file), and the raw file, whose position
        measures progress.

    Raises:
        SourceError: it does not exist, is not a file or cannot be read, or its compressed data is damaged, or unpacks
            to more than 200 times its size.
    """
    require_file(path)
    damaged = f"Copy it again, or if it is not compressed, remove {PurePosixPath(path).suffix} from its name."
    try:
        with fsspec.open(path, "rb") as raw:
            stream = _decompressed(path, raw)
            yield (stream if stream is raw else bounded(path, stream, raw)), raw
    except FileNotFoundError as error:
        raise SourceError(f"{path}: no such file. Correct its path.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(f"{path}: damaged gzip data ({error}). {damaged}") from error
    except zipfile.BadZipFile as error:
        raise SourceError(
            f"{path}: the zip archive cannot be read ({error}). Unpack it. If that fails: {damaged}"
        ) from error
    except OSError as error:  # also of Zstandard
        is_damaged = error.errno is None and path.lower().endswith(".zst")
        remedy = damaged if is_damaged else "Check the file and its permissions."
        raise SourceError(f"{path}: cannot be read ({error}). {remedy}") from error


def read_bytes(path: str) -> bytes:
    """Return the content of a file, decompressed by its suffix."""
    with open_bytes(path) as (stream, _):
        return stream.read()


def read_text(path: str) -> str:
    """Return a file as text, without a byte order mark.

    Raises:
        SourceError: as for `open_bytes`, or the file is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 ({error}). Copy it again.") from error


def line_blocks(
    path: str, report: ReadReport | None, block_bytes: int | None = None, *, encoding: str | None = None
) -> Iterator[Block]:
    """Yield the lines of a file in blocks of about `block_bytes`, as UTF-8 without a byte order mark.

    Args:
        path: the file.
        report: counts the bytes read.
        block_bytes: size of a block.
        encoding: encoding of the file, unless it has a byte order mark or is UTF-8.

    Raises:
        SourceError: as for `open_bytes`; or the file is compressed, or UTF-16 without a byte order mark; or a line
            exceeds `MAX_LINE_BYTES`; or bytes have no character in the file's encoding.
    """
    with open_bytes(path) as (stream, raw):
        line, size, earlier = 1, 0, report.bytes_read if report else 0
        pending: list[bytes] = []  # pieces of an unfinished line; joined once, to avoid quadratic time on long lines
        for content in _as_utf8(path, stream, block_bytes or BLOCK_BYTES, encoding):
            if report is not None:
                report.bytes_read = earlier + raw.tell()
            end = content.rfind(b"\n") + 1
            if end:
                block = b"".join((*pending, content[:end]))
                yield _block(block, line)
                line += block.count(b"\n")
                pending, size = [], 0
            pending.append(content[end:])
            size += len(content) - end
            if size > MAX_LINE_BYTES:
                raise SourceError(
                    f"{path}: line {line} is longer than {MAX_LINE_BYTES >> 20} MiB; "
                    "expected one record per line. Check the format of the file."
                )
        if size and (last := _block(b"".join(pending), line)).content:
            yield last


def _as_utf8(path: str, stream: IO[bytes], block_bytes: int, named: str | None) -> Iterator[bytes]:
    """Yield the content of a stream, converted to UTF-8."""
    head = stream.read(max(block_bytes, _MIN_PEEK_BYTES))
    encoding = encoding_to_use(head, named, lambda: is_utf8(_pieces(path)))
    _require_text(path, head, encoding)
    first = (head[start : start + block_bytes] for start in range(0, len(head), block_bytes))
    contents = itertools.chain(first, iter(lambda: stream.read(block_bytes), b""))
    if encoding is None:
        yield from contents
        return
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    for content, is_last in itertools.chain(((content, False) for content in contents), [(b"", True)]):
        try:
            text = decoder.decode(content, is_last)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].count(b"\n")
            raise SourceError(
                f"{path}, line {line}: byte 0x{error.object[error.start]:02x} has no character in {encoding}, the "
                f"encoding of the file by {'its byte order mark' if marked_encoding(head) else '`--encoding`'}. "
                f"Find the right encoding: `file -i {shell_name(path)}`."
            ) from error
        line += text.count("\n")
        yield text.encode()


def _pieces(path: str) -> Iterator[bytes]:
    with open_bytes(path) as (stream, _):
        yield from iter(lambda: stream.read(BLOCK_BYTES), b"")


def require_file(path: str) -> None:
    """Refuse a named pipe, device or socket, which can be read only once or would block.

    Raises:
        SourceError: the path is one of them.
    """
    try:
        mode = Path(path.removeprefix("file://")).stat().st_mode
    except (OSError, ValueError):
        return  # a URL, or a missing file: opening it raises the error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise SourceError(
            f"{path} is {kind_of(mode)}, expected a file or folder. Write its content to a file and use the file: "
            f"`cat {shell_name(path)} > text.txt`"
        )


def _require_text(path: str, content: bytes, encoding: str | None) -> None:
    """Refuse a file that begins as compressed data (without its suffix, or twice), a table or unmarked UTF-16."""
    packed = next((found for magic, found in _PACKED.items() if content.startswith(magic)), None)
    if packed is not None:
        raise SourceError(f"{path}: contains {packed[0]} data, expected text. {packed[1]}")
    if encoding is None and (wide := unmarked_wide(content)) is not None:
        raise SourceError(
            f"{path}: {wide.upper()} without a byte order mark, expected UTF-8. Convert the file: `iconv -f {wide} -t "
            f"utf-8 {shell_name(path)} > {utf8_name(path)}`, or name the encoding {NAME_ENCODING}: {wide}. {MOVE_OLD}"
        )


def _block(content: bytes, line: int) -> Block:
    return Block(content.removeprefix(_BYTE_ORDER_MARK) if line == 1 else content, line)


def _decompressed(path: str, raw: IO[bytes]) -> IO[bytes]:
    name = path.lower()
    if name.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if name.endswith(".zst"):
        return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))
    if name.endswith(".zip"):
        return _only_member(path, raw)
    return raw


def _only_member(path: str, raw: IO[bytes]) -> IO[bytes]:
    """Open the single file of a zip archive; files that macOS adds are ignored."""
    try:
        archive = zipfile.ZipFile(raw)
        files = [info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX/")]
        if len(files) != 1:
            raise SourceError(f"{path} contains {len(files)} files, expected one. Unpack it and use the folder.")
        return io.BufferedReader(archive.open(files[0].filename))  # type: ignore[type-var]  # a raw stream in all but its type
    except RuntimeError as error:  # it has a password, or a version or compression that Python does not know
        raise zipfile.BadZipFile(str(error)) from error
