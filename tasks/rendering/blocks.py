"""Pages as lists of blocks, each with its HTML and its Markdown.

`bsl.tasks.rendering.html` and `bsl.tasks.rendering.markdown` render them. A new block is a class, without registration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from bsl.tasks.rendering.escaping import code, fenced, grid, plain, sentence
from bsl.tasks.rendering.numbers import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.tasks.rendering.svg import Chart

_NUMBER: Final = re.compile(r"[+-]?[\d,.]+( ?%| s| ± [\d.]+| → [\d.-]+)?|[–<≤]? ?[\d.]*|\[[^][]+\]")
_SPREAD: Final = re.compile(r"(?P<value>[+-]?[\d.]+(?: ± [\d.]+)?) \[(?P<low>[^][,]+), (?P<high>[^][,]+)\](?P<rest>.*)")
WITH_INTERVAL: Final = " with 95 % interval"
"""End of a table's title."""
_LONG: Final = 28  # a column with a cell longer than this is text that may wrap


class Block(Protocol):
    """A part of a page that renders itself."""

    template: ClassVar[str]
    """Jinja2 template of the HTML, with the variable `block`. Strings are escaped; it has the filters `drawn`,
    `sentence` and `split_interval`, and the function `show`, which renders another block."""

    def markdown(self) -> Iterator[str]:
        """Yield paragraphs of Markdown."""


@dataclass(frozen=True)
class Row:
    """A row of a table: one text per column, and a class of style.css, such as `published`."""

    cells: Sequence[str]
    role: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a heading per column.

    If `brief`, Markdown omits the intervals, and `WITH_INTERVAL` in the title, so that a wide table fits the page of
    the Prefect UI.
    """

    template: ClassVar[str] = """\
{% macro kind(column) %}
{% if block.is_number(column) %} class="num"{% elif block.is_text(column) %} class="text"{% endif %}
{%- endmacro %}
{% if block.rows %}
<div class="scroll" tabindex="0" role="group" aria-label="{{ block.title }}">
<table>
<caption>{{ block.title }}</caption>
<thead><tr>
{% for head in block.heads %}
<th scope="col"{{ kind(loop.index0) }}>{{ head }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in block.rows %}
<tr{% if row.role %} class="{{ row.role }}"{% endif %}>
{% for cell in row.cells %}
{% if loop.first %}
<th scope="row"{{ kind(0) }}>{{ cell }}</th>
{% else %}
{% set value, spread = cell | split_interval %}
<td{{ kind(loop.index0) }}>{{ value }}{% if spread %}<small>{{ spread }}</small>{% endif %}</td>
{% endif %}
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
{% else %}
<p class="note">{{ block.title }}: none.</p>
{% endif %}
"""
    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    brief: bool = False

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, object]]) -> Table:
        """Return a table of rows with equal keys, which become the headings; floats are rounded."""
        heads = [name.replace("_", " ") for name in rows[0]] if rows else []
        return cls(title, heads, [Row([shown(value) for value in row.values()]) for row in rows])

    def is_number(self, column: int) -> bool:
        """Return whether all cells of a column are numbers."""
        return bool(self.rows) and all(_NUMBER.fullmatch(split_interval(row.cells[column])[0]) for row in self.rows)

    def is_text(self, column: int) -> bool:
        """Return whether a column has long texts."""
        return any(len(split_interval(row.cells[column])[0]) > _LONG for row in self.rows)

    def markdown(self) -> Iterator[str]:
        """Yield the caption and the table."""
        rows = [[split_interval(cell)[0] if self.brief else cell for cell in row.cells] for row in self.rows]
        title = plain(self.title.removesuffix(WITH_INTERVAL) if self.brief else self.title)
        yield f"{title}:\n\n{grid(self.heads, rows)}" if rows else f"{title}: none."


@dataclass(frozen=True)
class Charts:
    """Charts in a row; `lead`: large charts at the top of the page."""

    template: ClassVar[str] = """\
<div{% if not block.lead %} class="charts"{% endif %}>
{% for chart in block.drawn %}
<figure{% if block.lead %} class="lead"{% endif %}>{{ chart.svg | drawn }}</figure>
{% endfor %}
</div>
"""
    drawn: Sequence[Chart]
    lead: bool = False

    def markdown(self) -> Iterator[str]:
        """Yield a link to each chart's file next to the page."""
        yield from (f"![{plain(chart.label)}]({chart.file})" for chart in self.drawn)


@dataclass(frozen=True)
class Prose:
    """A paragraph; text between backticks is code. `under`: a heading within a part; `note`: small print."""

    template: ClassVar[str] = """\
{% if block.under %}
<h3>{{ block.text }}</h3>
{% else %}
<p{% if block.note %} class="note"{% endif %}>{{ block.text | sentence }}</p>
{% endif %}
"""
    text: str
    under: bool = False
    note: bool = False

    def markdown(self) -> Iterator[str]:
        """Yield the paragraph."""
        yield f"### {plain(self.text)}" if self.under else sentence(self.text)


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    template: ClassVar[str] = """\
<dl class="facts">
{% for name, value in block.pairs.items() %}
<div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>
{% endfor %}
</dl>
"""
    pairs: Mapping[str, str]

    def markdown(self) -> Iterator[str]:
        """Yield a table."""
        yield grid(["name", "value"], list(self.pairs.items()))


@dataclass(frozen=True)
class Code:
    """Text to copy; Markdown names its language."""

    template: ClassVar[str] = """\
<pre tabindex="0"><code>{{ block.text }}</code></pre>
"""
    text: str
    language: str = ""

    def markdown(self) -> Iterator[str]:
        """Yield the text as a fenced block; a single line as a code span."""
        yield fenced(self.text, self.language) if "\n" in self.text else code(self.text)


@dataclass(frozen=True)
class Folded:
    """Blocks in a collapsed HTML section with a summary line."""

    template: ClassVar[str] = """\
<details>
<summary>{{ block.summary }}</summary>
{% for inner in block.blocks %}
{{ show(inner) }}
{% endfor %}
</details>
"""
    summary: str
    blocks: Sequence[Block]

    def markdown(self) -> Iterator[str]:
        """Yield a heading and the blocks."""
        yield f"### {plain(self.summary)}"
        for block in self.blocks:
            yield from block.markdown()


@dataclass(frozen=True)
class Part:
    """A section of a page; renderers skip a section without blocks.

    Markdown omits a section that is `html_only`, because it is long or differs between equal runs (seconds, cache hits,
    commit): the bytes of a Markdown page are part of its artifact's digest.
    """

    title: str
    blocks: Sequence[Block] = field(default_factory=list)
    html_only: bool = False

    @property
    def anchor(self) -> str:
        """Anchor of links to this section."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    """A page: heading, verdict in capitals (empty for none), finding in one sentence, blocks, sections."""

    title: str
    word: str
    sentence: str
    lead: Sequence[Block]
    parts: Sequence[Part]

    @classmethod
    def of_result(
        cls, title: str, sentences: Sequence[str], chart: Chart | None, parts: Sequence[Part], word: str = ""
    ) -> Page:
        """Return the page of a comparison: the verdict, the findings and a chart, then the sections."""
        lead: list[Block] = [*map(Prose, sentences[1:]), *([Charts([chart], lead=True)] if chart else [])]
        return cls(title, word, sentences[0] if sentences else "", lead, parts)

    @property
    def chart_files(self) -> list[Chart]:
        """The charts that Markdown shows as files."""
        blocks = [*self.lead, *(block for part in self.parts if not part.html_only for block in part.blocks)]
        return [chart for block in _unfolded(blocks) if isinstance(block, Charts) for chart in block.drawn]


def _unfolded(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        yield from _unfolded(block.blocks) if isinstance(block, Folded) else (block,)


def split_interval(text: str) -> tuple[str, str]:
    """Split `value [low, high]` into the value and `low to high`; for other texts the second part is empty."""
    spread = _SPREAD.fullmatch(text)
    return (spread["value"], f"{spread['low']} to {spread['high']}{spread['rest']}") if spread else (text, "")
