"""A page as one HTML file that needs no other: what may stand on it, and how it becomes text.

Every string is escaped by the template, whoever wrote it; only charts, which `models.report.svg` draws, stand as they
are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from models.report.escaping import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NUMBER: Final = re.compile(r"[+-]?[\d,.]+( ?%| s)?|[–<]? ?[\d.]*|\[[^][]+\]")
_SPREAD: Final = re.compile(r"(?P<value>[+-]?[\d.]+(?: ± [\d.]+)?) \[(?P<low>[^][,]+), (?P<high>[^][,]+)\](?P<rest>.*)")
_LONG: Final = 28  # letters from which on a column is text that may break


@dataclass(frozen=True)
class Cell:
    """A cell: its text, and what stands small below it, such as an interval."""

    text: str
    small: str = ""

    @classmethod
    def of(cls, text: str) -> Cell:
        """From text; of `value [low, high]` the interval is small."""
        spread = _SPREAD.fullmatch(text)
        return cls(spread["value"], f"{spread['low']} to {spread['high']}{spread['rest']}") if spread else cls(text)


@dataclass(frozen=True)
class Line:
    """A row of a table; `role` is a class of style.css, such as `published`."""

    cells: Sequence[Cell]
    role: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a heading for each column."""

    block: ClassVar = "table"
    title: str
    heads: Sequence[str]
    rows: Sequence[Line]

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, object]]) -> Table:
        """From equal-keyed rows, whose keys are the headings; figures are rounded, their intervals stand below."""
        lines = [Line([Cell.of(shown(value)) for value in row.values()]) for row in rows]
        return cls(title, [name.replace("_", " ") for name in rows[0]] if rows else [], lines)

    def is_number(self, column: int) -> bool:
        """Whether all of a column are figures."""
        return bool(self.rows) and all(_NUMBER.fullmatch(row.cells[column].text) for row in self.rows)

    def is_text(self, column: int) -> bool:
        """Whether some of a column are sentences."""
        return any(len(row.cells[column].text) > _LONG for row in self.rows)


@dataclass(frozen=True)
class Charts:
    """Drawn charts, side by side where there is room; one that leads the page is larger."""

    block: ClassVar = "charts"
    drawn: Sequence[str]
    lead: bool = False


@dataclass(frozen=True)
class Prose:
    """A paragraph; `under` makes it a heading within a part, `note` smaller print."""

    block: ClassVar = "prose"
    text: str
    under: bool = False
    note: bool = False


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    block: ClassVar = "facts"
    pairs: Mapping[str, str]


@dataclass(frozen=True)
class Code:
    """Text to be copied."""

    block: ClassVar = "code"
    text: str


@dataclass(frozen=True)
class Station:
    """An artifact on the data's way: its kind, and lines on it; `made` in this run or cached."""

    title: str
    lines: Sequence[str]
    made: bool


@dataclass(frozen=True)
class Way:
    """The data's way: a group of artifacts after the other."""

    block: ClassVar = "way"
    groups: Sequence[Sequence[Station]]


@dataclass(frozen=True)
class Folded:
    """What stands behind a line until it is asked for."""

    block: ClassVar = "folded"
    summary: str
    blocks: Sequence[Block]


Block = Table | Charts | Prose | Facts | Code | Way | Folded


@dataclass(frozen=True)
class Part:
    """A section of a page."""

    title: str
    blocks: Sequence[Block] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Where links to it lead."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: its heading.
        word: a finding in capitals, such as `BETTER`; empty without one.
        sentence: what is found, in one sentence.
        lead: what stands above all parts.
        parts: its sections.
    """

    title: str
    word: str
    sentence: str
    lead: Sequence[Block]
    parts: Sequence[Part]

    def html(self) -> str:
        """The file's text; equal pages give equal text."""
        return _environment().get_template("page.html").render(page=self, style=Markup(_source("style.css"))) + "\n"


def shown(value: object) -> str:
    """A value as a cell shows it: figures rounded, thousands parted."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@cache
def _environment() -> Environment:
    loaded = FunctionLoader(_source)
    environment = Environment(
        loader=loaded, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=_plain
    )
    environment.filters["drawn"] = Markup
    return environment


def _source(name: str) -> str:
    return files("models.report").joinpath("templates", name).read_text(encoding="utf-8")


def _plain(value: object) -> object:
    """Foreign text without control characters, or such as turn the direction of what follows."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)
