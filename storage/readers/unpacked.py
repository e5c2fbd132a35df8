"""Bound what a compressed file unpacks to: a few megabytes can hold gigabytes of zeros."""

from __future__ import annotations

import io
import shlex
from typing import IO, TYPE_CHECKING, Any, Final

from bsl.storage.errors import SourceError

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_RATIO: Final = 200  # text has 3 to 20, machine-made tables up to about 100; gzip allows 1,032
FREE_BYTES: Final = 256 << 20  # smaller contents are read whatever their ratio
_BUFFER_BYTES: Final = 1 << 20
_COMMANDS: Final = {".gz": "gzip -dk", ".zst": "zstd -dk", ".zip": "unzip"}


def is_bomb(unpacked: int, packed: int) -> bool:
    """Return whether a content is too large for its compressed size, both in bytes."""
    return unpacked > FREE_BYTES and unpacked > MAX_RATIO * packed


def bounded(path: str, stream: IO[bytes], raw: IO[bytes]) -> IO[bytes]:
    """Return the content of a compressed file, which refuses to unpack to too much; see `_Unpacked`."""
    return io.BufferedReader(_Unpacked(path, stream, raw), _BUFFER_BYTES)


class _Unpacked(io.RawIOBase):
    """Read the content of a compressed file.

    Args:
        path: the file, for messages.
        stream: its content.
        raw: the compressed bytes; their position is that of the content read so far.

    Raises:
        SourceError: while reading, the content exceeds `FREE_BYTES`, and `MAX_RATIO` times the compressed bytes.
    """

    def __init__(self, path: str, stream: IO[bytes], raw: IO[bytes]) -> None:
        self._path, self._stream, self._raw = path, stream, raw
        self._position = 0

    def readinto(self, buffer: Buffer, /) -> int:
        """Read the next bytes into a buffer; return their number."""
        view = memoryview(buffer).cast("B")
        content = self._stream.read(len(view))
        self._position += len(content)
        if is_bomb(self._position, self._raw.tell()):
            self._refuse()
        view[: len(content)] = content
        return len(content)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether `seek` is supported, as for gzip and zip."""
        return bool(self._stream.seekable())

    def seek(self, *place: Any) -> int:  # noqa: ANN401 - offset and origin, as for any file
        """Go to a position, which may unpack all before it again."""
        self._position = self._stream.seek(*place)
        return self._position

    def tell(self) -> int:
        """Return the position in the content."""
        return self._position

    def _refuse(self) -> None:
        packed = self._raw.tell()
        command = next(command for ending, command in _COMMANDS.items() if self._path.lower().endswith(ending))
        raise SourceError(
            f"{self._path}: unpacks to more than {MAX_RATIO} times its size (found {self._position:,} bytes from "
            f"{packed:,}, expected at most {MAX_RATIO * packed:,}). If you trust the file, unpack it first: "
            f"`{command} {shlex.quote(self._path)}`."
        )
