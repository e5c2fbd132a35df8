"""Values in messages: on one line and short, whatever the caller passed."""

from __future__ import annotations

import os
from typing import Final

MOST: Final = 100
"""Largest number of characters of a value in a message."""


_LONGEST_NAME: Final = 4096
"""Characters of a name, as of a path on Linux."""


def require_name(name: str | os.PathLike[str], role: str) -> str:
    """Return the name of a file, set, recipe or encoder; a text or numbers in its place would fill every message.

    Raises:
        TypeError: It is neither a string nor a path.
        ValueError: It is longer than any path.
    """
    name = os.fspath(name) if isinstance(name, os.PathLike) else name
    if not isinstance(name, str):
        raise TypeError(f"{role} is {described(name)}, expected a name or path")
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"{role} is {brief(name)} of {len(name):,} characters, expected a name or path")
    return name


def brief(value: object) -> str:
    """Return a value as Python writes it, on one line and at most `MOST` characters."""
    text = repr(value[:MOST] if isinstance(value, str) else value)
    line = " ".join(text[: 4 * MOST].split())  # an array's repr has many lines
    return line if len(line) <= MOST else f"{line[: MOST - 2]} …"


def described(value: object) -> str:
    """Return a value's type and content, as in `a list ([1, 2])`."""
    return f"a {type(value).__name__} ({brief(value)})"
