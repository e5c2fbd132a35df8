"""A page as a list of blocks; `tasks.rendering.html` and `tasks.rendering.markdown` render it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from tasks.rendering.numbers import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.rendering.svg import Chart

_NUMBER: Final = re.compile(r"[+-]?[\d,.]+( ?%| s| ± [\d.]+)?|[–<]? ?[\d.]*|\[[^][]+\]")
_SPREAD: Final = re.compile(r"(?P<value>[+-]?[\d.]+(?: ± [\d.]+)?) \[(?P<low>[^][,]+), (?P<high>[^][,]+)\](?P<rest>.*)")
_LONG: Final = 28  # letters from which on a column is text that may break


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        cells: one text per column.
        role: a class of style.css, such as `published`; empty without one.
    """

    cells: Sequence[str]
    role: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a heading per column.

    Attributes:
        title: the caption.
        heads: the headings.
        rows: the rows.
        brief: whether Markdown leaves out the intervals, so that a wide table fits the page of the Prefect UI.
    """

    block: ClassVar = "table"
    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    brief: bool = False

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, object]]) -> Table:
        """Return a table of equal-keyed rows, whose keys are the headings; figures are rounded."""
        heads = [name.replace("_", " ") for name in rows[0]] if rows else []
        return cls(title, heads, [Row([shown(value) for value in row.values()]) for row in rows])

    def is_number(self, column: int) -> bool:
        """Whether all cells of a column are figures."""
        return bool(self.rows) and all(_NUMBER.fullmatch(split_interval(row.cells[column])[0]) for row in self.rows)

    def is_text(self, column: int) -> bool:
        """Whether some cells of a column are sentences."""
        return any(len(split_interval(row.cells[column])[0]) > _LONG for row in self.rows)


@dataclass(frozen=True)
class Charts:
    """Charts in a row.

    Attributes:
        drawn: the charts.
        lead: whether they open the page and are larger.
        files: whether Markdown shows them, each as a file beside the page.
    """

    block: ClassVar = "charts"
    drawn: Sequence[Chart]
    lead: bool = False
    files: bool = True


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
    """Text to copy; Markdown names its language."""

    block: ClassVar = "code"
    text: str
    language: str = ""


@dataclass(frozen=True)
class Station:
    """An artifact of a lineage: its kind, lines about it, and whether this run made it."""

    title: str
    lines: Sequence[str]
    made: bool


@dataclass(frozen=True)
class Lineage:
    """Groups of artifacts in the order in which the data flows."""

    block: ClassVar = "lineage"
    groups: Sequence[Sequence[Station]]


@dataclass(frozen=True)
class Folded:
    """Blocks that HTML hides behind a line until it is opened."""

    block: ClassVar = "folded"
    summary: str
    blocks: Sequence[Block]


Block = Table | Charts | Prose | Facts | Code | Lineage | Folded


@dataclass(frozen=True)
class Part:
    """A section of a page; renderers leave out one without blocks.

    Attributes:
        title: the heading.
        blocks: the content.
        html_only: whether Markdown leaves the section out: it is long, or differs between equal runs (seconds, cache
            hits, commit), and the bytes of a Markdown page are part of its artifact's digest.
    """

    title: str
    blocks: Sequence[Block] = field(default_factory=list)
    html_only: bool = False

    @property
    def anchor(self) -> str:
        """The target of links to this section."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: the heading.
        word: the verdict in capitals, such as `BETTER`; empty without one.
        sentence: the finding in one sentence.
        lead: blocks above all sections.
        parts: the sections.
    """

    title: str
    word: str
    sentence: str
    lead: Sequence[Block]
    parts: Sequence[Part]

    @classmethod
    def of_result(
        cls, title: str, said: Sequence[str], chart: Chart | None, parts: Sequence[Part], word: str = ""
    ) -> Page:
        """Return the page of a comparison: the verdict, the findings and a chart, then the sections.

        Args:
            title: the heading.
            said: the findings, a sentence each.
            chart: the systems' figures; None where nothing has one.
            parts: the sections.
            word: the verdict in capitals; empty without one.
        """
        lead: list[Block] = [*map(Prose, said[1:]), *([Charts([chart], lead=True)] if chart else [])]
        return cls(title, word, said[0] if said else "", lead, parts)

    @property
    def filed(self) -> list[Chart]:
        """The charts that Markdown shows as files."""
        blocks = [*self.lead, *(block for part in self.parts if not part.html_only for block in part.blocks)]
        return [chart for block in blocks if isinstance(block, Charts) and block.files for chart in block.drawn]


def split_interval(text: str) -> tuple[str, str]:
    """Split `value [low, high]` into the value and `low to high`; any other text has no second part."""
    spread = _SPREAD.fullmatch(text)
    return (spread["value"], f"{spread['low']} to {spread['high']}{spread['rest']}") if spread else (text, "")
