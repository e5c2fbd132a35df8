"""Escape foreign text (titles, names of sources, sentences, reasons) for Markdown and HTML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape

from bsl.storage.filesystem.control_characters import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

# Starts of code spans, emphasis, HTML, table cells, formulas and entities; the end of a link's or image's text before
# its target; underscores, except inside a word.
_ACTIVE: Final = re.compile(r"[\\`*<>|~&$]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])")
# Starts of a heading, list or rule, or a heading's underline; quotes, tables and fences start with a character above.
_START: Final = re.compile(r"(?:#{1,6}|[-+]|[0-9]{1,9}[.)]|\[[ xX]\])(?= |$)|=+ *$|-[- ]*$")
_END: Final = re.compile(r"(?<![^ ])#+ *$")  # Markdown removes it from a heading
_SPAN: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SPACE: Final = re.compile("[\t\n\r\u2028\u2029]+")


def plain(text: str) -> str:
    """Escape a text as one line of Markdown, valid anywhere in a page.

    Line ends become spaces; control characters become escapes.
    """
    return _begun(_inside(_line(text)))


def sentence(text: str) -> str:
    """Escape a text as `plain`, with words between single backticks as code."""
    others, words = _SPAN.split(text)[::2], _SPAN.findall(text)
    escaped = (_inside(_line(other)) for other in others)
    return _begun("".join(map("".join, zip(escaped, [*map(code, words), ""], strict=True))))


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
    text = visible(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of headings and rows of text."""
    lines = [[_inside(_line(cell)) for cell in row] for row in (heads, *rows)]
    lines.insert(1, ["---"] * len(heads))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _line(text: str) -> str:
    return visible(_SPACE.sub(" ", text))


def _inside(line: str) -> str:
    """Escape a line that does not begin a paragraph."""
    return _ACTIVE.sub(r"\\\g<0>", line)


def _begun(line: str) -> str:
    """Escape the beginning of an escaped line, which begins no heading, list, rule or code, and its end."""
    line = line.lstrip()
    if found := _START.match(line):
        place = found.end() - 1 if line[0].isdigit() else 0
        line = f"{line[:place]}\\{line[place:]}"
    return _END.sub(r"\\\g<0>", line)
