"""Foreign texts on pages are text: a parser of Markdown or HTML finds no structure in them, and no control character.

The text of a case depends only on its number.
"""

import re
from html.parser import HTMLParser
from random import Random

import pytest
from markdown_it import MarkdownIt

from bsl.storage.filesystem.control_characters import visible
from bsl.tasks.rendering.blocks import Code, Facts, Folded, Page, Part, Prose, Row, Table
from bsl.tasks.rendering.escaping import code, fenced, grid, plain, sentence
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown
from tests.differential.cases import FIRST, count
from tests.every import every

CASES = range(FIRST, FIRST + count(300))
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKS = "# ## - + * 1. 2) > | ` `` ``` ~~~ --- === *** ___ _ ** ~~ ! [ ] ( ) : < > & ; \\ $ $$ a é 漢 word"
PIECES = (
    *MARKS.split(),
    *(" ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\x1b[31m", "\0", "\x7f", "\x9b", "\u202e", "\u2066", "\u200f"),
    *("\ud800", "\ufffe", "\u2028", "[x](http://e)", "![](e)", "[r]: http://e", "<b>", "<!--", "&lt;", "[ ] ", "[^1]"),
)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SMALLEST = (
    "# a", "#", "a #", "- a", "+ a", "-", "1. a", "1) a", "2024. It rained.", "> a", "| a | b |", "```", "~~~", "---",
    "--- ---", "===", "***", "___", "    a", "\ta", "[ ] a", "<b>a", "a\n# b", "a\n\n- b", "`# a`", "``` a", "# `a` #",
    "\x1b[31mred", "right\u202eleft", "a\0b", "a\rb", "\u200fa",
)  # fmt: skip


def text_of(case):
    random = Random(f"page {case}")
    return "".join(random.choice(PIECES) for _ in range(random.randint(1, 7)))


def words(text):
    """Return a text as pages show it: control characters as escapes, and one space for each white space."""
    return re.sub(r"\s+", " ", visible(re.sub("[\t\n\r\u2028\u2029]+", " ", text))).strip()


def read(written, *frame):
    tokens = PARSER.parse(written)
    blocks = [token.type.removesuffix("_open") for token in tokens if token.type.endswith("_open")]
    assert blocks == list(frame), (written, blocks)
    (inline,) = (token for token in tokens if token.type == "inline")
    return words("".join(map(content, inline.children or ())))


def content(token):
    assert token.type in ("text", "text_special", "code_inline"), token
    return token.content


def check(text):
    expected = words(text)
    if not expected:
        return
    assert read(plain(text), "paragraph") == expected
    assert read(f"## {plain(text)}", "heading") == expected
    assert read(f"- {plain(text)}", "bullet_list", "list_item", "paragraph") == expected
    in_prose = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"\1", re.sub("[\t\n\r\u2028\u2029]+", " ", text))
    assert read(sentence(text), "paragraph") == words(in_prose)
    assert read(code(text), "paragraph") == expected
    (block,) = PARSER.parse(fenced(text))
    assert (block.type, block.content) == ("fence", f"{visible(text)}\n".replace("\0", "\ufffd"))
    table = PARSER.parse(grid(["head", text], [[text, "cell"]]))
    cells = [words("".join(map(content, token.children or ()))) for token in table if token.type == "inline"]
    assert cells == ["head", expected, expected, "cell"]


def pages_of(text):
    table = Table(text, ["head", text], [Row([text, "cell"])])
    codes = [Code(text), Code(f"{text}\n{text}")]
    blocks = [Prose(text), Prose(text, under=True), table, Facts({text: text}), *codes]
    page = Page(text, "", text, [Prose(text)], [Part(text, blocks), Part("b", [Folded(text, [Prose(text)])])])
    return markdown(page), html(page)


class Texts(HTMLParser):
    """Collects the names of elements and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.names: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Remember an element and its attributes, but no class, by a text's length, nor code, by its backticks."""
        if tag != "code":
            self.names.append(" ".join([tag, *(name for name, _ in attrs if name != "class")]))


@pytest.mark.differential
def test_text_is_text_in_every_place():
    for case in CASES:
        check(text_of(case))


@pytest.mark.differential
def test_pages_have_the_structure_of_harmless_pages_and_no_control_characters():
    for case in CASES[::10]:
        text = text_of(case)
        if not words(text):
            continue
        written, page = pages_of(text)
        assert not HIDDEN.search(written + page), case
        assert Texts(page).names == Texts(pages_of("a word\nand another" if "\n" in text else "a word")[1]).names, case


@every(SMALLEST)
def test_text_that_looks_like_markdown_stays_text(text):
    check(text)
    written, page = pages_of(text)
    assert not HIDDEN.search(written + page)
