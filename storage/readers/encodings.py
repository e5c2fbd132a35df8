"""Decode files that are not UTF-8: by their byte order mark, or by the encoding that the user names.

A byte order mark decides. Otherwise a file whose bytes are all valid UTF-8 is UTF-8, also in a folder of files with
another encoding; only the others are decoded by the named encoding. UTF-16 and UTF-32 without a mark must be named.
"""

from __future__ import annotations

import codecs
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAME_ENCODING: Final = (
    "with `--encoding` (adapt, classify, embed, search, pairs, sweep own; set of labels: `labels:FILE#encoding=NAME`; "
    "recipes: `ingest.sources[].encoding`)"
)
"""The options that name an encoding, for messages."""
MOVE_OLD: Final = "If you named its folder, move the old file out of the folder after converting it."
"""For messages about a converted file: both would be read."""
_MARKS: Final = {  # UTF-32 first: its little-endian mark begins like that of UTF-16
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_WIDE: Final = ("utf-16", "utf-32")
_STATEFUL: Final = ("utf-7", "iso2022", "hz")  # letters of other scripts look like ASCII
_MIN_BYTES: Final = 16
_PEEK_BYTES: Final = 4096
_UNDEFINED: Final = re.compile(b"[\x81\x8d\x8f\x90\x9d]")  # bytes without a character in Windows-1252
_RUN: Final = re.compile(b"[\x80-\xff]{3,}")  # frequent in other scripts, rare in Western languages


_REPAIR: Final = (
    "import codecs, sys; "
    "codecs.register_error('other', lambda e: (e.object[e.start : e.end].decode('cp1252', 'replace'), e.end)); "
    "sys.stdout.buffer.writelines(line.decode('utf-8', 'other').encode() for line in sys.stdin.buffer)"
)
"""Program that converts to UTF-8 the bytes that are not UTF-8, from Windows-1252, or to � without a character there."""
_SEARCHED_BYTES: Final = 16 << 20
_PACKED: Final = (".gz", ".zst", ".zip")


def known_encoding(name: str) -> str:
    """Return the usual name of an encoding.

    Raises:
        ValueError: Python has no such encoding of text, or ASCII letters do not stand for themselves in it.
    """
    try:
        found = codecs.lookup(name)
        usual = found.name
        plain = "a\n".encode(usual) == b"a\n" or usual.startswith(_WIDE)
    except (LookupError, ValueError) as error:
        raise ValueError(f"{name!r} is not an encoding of text. Use a name such as cp1252 or utf-16-le.") from error
    if not plain or usual.startswith(_STATEFUL):
        raise ValueError(f"encoding {name!r} cannot be read. Convert the file to UTF-8 by `iconv -f {name} -t utf-8`.")
    return usual


Encoding = Annotated[str, AfterValidator(known_encoding)]
"""Name of an encoding, such as `cp1252`."""


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding of a byte order mark other than that of UTF-8; None without one."""
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)


def unmarked_wide(head: bytes) -> str | None:
    """Return the UTF-16 or UTF-32 of Latin letters without a byte order mark, by the positions of NUL; else None."""
    content = head[:_PEEK_BYTES]
    if len(content) < _MIN_BYTES:
        return None
    nul = [content[offset::4].count(0) * 4 > 0.6 * len(content) for offset in range(4)]
    none = [content[offset::4].count(0) == 0 for offset in range(4)]
    if all(nul[:3]) and none[3]:
        return "utf-32-be"
    if all(nul[1:]) and none[0]:
        return "utf-32-le"
    even, odd = content[::2].count(0), content[1::2].count(0)
    if min(even, odd) == 0 and max(even, odd) * 6 > len(content):
        return "utf-16-be" if even else "utf-16-le"
    return None


def encoding_to_use(head: bytes, named: str | None, is_utf8: Callable[[], bool]) -> str | None:
    """Return the encoding from which a file is converted to UTF-8; None for UTF-8.

    Args:
        head: the first bytes of the file.
        named: encoding that the user named.
        is_utf8: returns whether all bytes of the file are UTF-8.
    """
    marked = marked_encoding(head)
    if marked is not None or named is None or head.startswith(_UTF8_MARK):
        return marked
    if not named.startswith(_WIDE) and is_utf8():
        return None
    return None if named == "utf-8" else named


def is_utf8(contents: Iterable[bytes]) -> bool:
    """Return whether the pieces of a file are together valid UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for content in contents:
            decoder.decode(content)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def remedy(path: str, bad: bytes) -> str:
    """Return what to do with a file that is not UTF-8.

    Args:
        path: the file.
        bad: bytes of lines that are not UTF-8.

    If other lines are UTF-8, naming an encoding would spoil these, so only conversion is advised. A packed file is not
    searched for such lines.
    """
    if Path(path).suffix.lower() in _PACKED:
        return (
            f"If all lines have one encoding, name it {NAME_ENCODING}, such as cp1252 for Western languages. Otherwise "
            "unpack the file, and use the unpacked file."
        )
    high = sum(byte > 127 for byte in bad)
    runs = sum(map(len, _RUN.findall(bad)))
    name = shell_name(path)
    if _UNDEFINED.search(bad) or 2 * runs > high:
        return (
            f"It is not in a Western encoding. Find its encoding (`file -i {name}`), and convert the file (`iconv -f "
            f"ENCODING -t utf-8 {name} > {utf8_name(path)}`) or name the encoding {NAME_ENCODING}. {MOVE_OLD}"
        )
    if _has_utf8_lines(path):
        return (
            "Other lines are UTF-8. If these are in Windows-1252, which includes Latin-1, convert them alone: "
            f'`{shlex.quote(sys.executable)} -c "{_REPAIR}" < {name} > {utf8_name(path)}`. {MOVE_OLD}'
        )
    return (
        f"It may be in Windows-1252, which includes Latin-1. Name the encoding {NAME_ENCODING}: cp1252, or convert the "
        f"file: `iconv -f cp1252 -t utf-8 {name} > {utf8_name(path)}`. {MOVE_OLD}"
    )


def _has_utf8_lines(path: str) -> bool:
    """Return whether a local file has lines of UTF-8 that are not ASCII, among its first bytes."""
    try:
        with Path(path).open("rb") as file:
            lines = file.read(_SEARCHED_BYTES).split(b"\n")
    except OSError:  # an address
        return False
    return any(not line.isascii() and is_utf8([line]) for line in lines)


def shell_name(path: str) -> str:
    """Return a path for a shell, quoted; one that begins with a dash would be an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def utf8_name(path: str) -> str:
    """Return a new name with the format's suffix for a converted file, quoted for a shell: `a.csv` → `a.utf8.csv`."""
    return shlex.quote(str(Path(path).with_suffix(f".utf8{Path(path).suffix}")))
