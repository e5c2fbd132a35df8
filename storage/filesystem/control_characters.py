r"""Show control characters as escapes: in a terminal or browser they hide, overwrite or reorder the text around them.

A foreign text (a sentence, label, title, file name) that is shown passes `visible`: in pages by
`bsl.tasks.rendering`, on a terminal by `bsl.flows.cli.terminal.log_lines.printable`.
"""

from __future__ import annotations

import re
from typing import Final

# All but tab and line feed: C0 and C1 controls, Unicode's Bidi_Control, line and paragraph separator, surrogates (which
# UTF-8 cannot encode), and the two noncharacters that XML forbids.
_CHARACTERS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff"
_CONTROL: Final = re.compile(f"[{_CHARACTERS}]")


def visible(text: str) -> str:
    r"""Return a text with control characters as escapes of Python, such as `\x1b`; tabs and line feeds stay."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def visible_json(text: str) -> str:
    r"""Return a JSON document with control characters as escapes of JSON, such as `\u001b`; its value is unchanged.

    In strings, JSON already has escapes for C0 controls; between values, it has only whitespace.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
