"""Control characters of file names and texts, spelled out: a terminal would obey them."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def printable(text: object) -> str:
    r"""Return a text with its control characters as escapes, such as `\x1b`; tabs and line feeds stay.

    Args:
        text: what is printed, or an object whose `str` is.
    """
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], str(text))
