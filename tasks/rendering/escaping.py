"""Escape foreign text (titles, names of sources, sentences, reasons) for Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

# Starts of code spans, emphasis, HTML, table cells and entities; the end of a link's or image's text before its target;
# underscores, except inside a word.
_ACTIVE: Final = re.compile(r"[\\`*<>|~&]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])")
_INVISIBLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SPAN: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SPACE: Final = re.compile("[\t\n\r\u2028\u2029]+")


def visible(text: str) -> str:
    """Replace control characters, and characters that change the text direction, by a replacement sign."""
    return _INVISIBLE.sub("�", text)


def plain(text: str) -> str:
    """Escape a text as one line of Markdown, valid anywhere in a page.

    Line ends become spaces; control characters are replaced as in `visible`.
    """
    return _ACTIVE.sub(r"\\\g<0>", _line(text))


def sentence(text: str) -> str:
    """Escape a text as `plain`, with words between single backticks as code."""
    others, words = _SPAN.split(text)[::2], _SPAN.findall(text)
    return "".join(map("".join, zip(map(plain, others), [*map(code, words), ""], strict=True)))


def html_sentence(text: str) -> Markup:
    """Escape a text for HTML, with words between single backticks as code."""
    return Markup(_SPAN.sub(r"<code>\1</code>", str(escape(visible(text)))))


def code(text: str) -> str:
    """Return a text, with or without backticks, as a Markdown code span."""
    line = _line(text)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if longest else f"{fence}{line}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Return a block of code; its fence is longer than any run of backticks in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of headings and rows of text."""
    lines = [list(map(plain, heads)), ["---"] * len(heads), *(list(map(plain, row)) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _line(text: str) -> str:
    return visible(_SPACE.sub(" ", text))
