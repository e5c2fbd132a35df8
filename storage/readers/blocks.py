"""Bytes of a source in blocks of whole lines, whatever file system and compression they come from."""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, cast

import fsspec
import pyarrow as pa

from storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.readers.report import ReadReport

BLOCK_BYTES: Final = 16 << 20  # the parsed frame and its strings are about as large; 64 MiB was no faster
MAX_LINE_BYTES: Final = 64 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines, each ending in a line feed except perhaps the last of the file.

    Attributes:
        content: the bytes.
        first_line: 1-based number of the first line.
    """

    content: bytes
    first_line: int


@contextmanager
def open_bytes(path: str, report: ReadReport) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open any fsspec address for reading.

    Yields:
        The content, decompressed by the suffix (`.gz`, `.zst`), and the file itself, whose position is the progress.

    Raises:
        SourceError: it does not exist or cannot be read, or its compressed data is damaged.
    """
    try:
        with fsspec.open(path, "rb") as raw:
            report.bytes_total += int(getattr(raw, "size", None) or raw.seek(0, os.SEEK_END))
            raw.seek(0)
            yield _decompressed(path, raw), raw
    except FileNotFoundError as error:
        raise SourceError(f"{path}: no such file; expected a source for {report.name}; correct its path") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(f"{path}: damaged gzip data ({error}); copy the file again") from error
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error}); check the file and its permissions") from error


def line_blocks(path: str, report: ReadReport, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """The lines of a file, in blocks of about `block_bytes`; a UTF-8 byte order mark is left out.

    Raises:
        SourceError: as `open_bytes`, or a line is longer than `MAX_LINE_BYTES`.
    """
    with open_bytes(path, report) as (stream, raw):
        line, waiting, earlier = 1, b"", report.bytes_read
        while content := stream.read(block_bytes):
            report.bytes_read = earlier + raw.tell()
            joined = waiting + content
            end = joined.rfind(b"\n") + 1
            waiting = joined[end:]
            lines = joined.count(b"\n")
            if len(waiting) > MAX_LINE_BYTES:
                raise SourceError(
                    f"{path}: line {line + lines} is longer than {MAX_LINE_BYTES >> 20} MiB; "
                    "expected one record per line; check the format of the source"
                )
            if end:
                yield _block(joined[:end], line)
                line += lines
        if waiting:
            yield _block(waiting, line)


def _block(content: bytes, line: int) -> Block:
    return Block(content.removeprefix(_BYTE_ORDER_MARK) if line == 1 else content, line)


def _decompressed(path: str, raw: IO[bytes]) -> IO[bytes]:
    if path.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if path.endswith(".zst"):
        return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))
    return raw
