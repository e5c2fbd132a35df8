"""The page of `bsl field` in HTML: which method to use, all of them on one axis, then the tables and the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.field import TEXT
from models.report.charts import mark_of, score_chart
from models.report.field import LEGEND, advice, method_rows, of_seeds, proof_rows
from models.report.html import Charts, Folded, Page, Part, Prose, Table
from models.report.own_text import again_part, text_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from models.report.field import FieldContent
    from models.report.html import Block

_ROLES: Final = {"above": "after", "below": "published"}
_DRAWN: Final = (
    "Mean over what was asked of held-out text, with 95 % interval; the line is the encoder as it is. A diamond is "
    "above it for sure, a cross below it for sure, a square cannot be told apart."
)


def field_html(content: FieldContent) -> str:
    """The page as one HTML file; equal content gives equal text."""
    said = [line.replace("**", "").replace("`", "") for line in advice(content)]
    return Page(
        title=content.title,
        word="",
        sentence=said[0],
        lead=[*(Prose(line) for line in said[1:]), Charts([_chart(content)], lead=True), Prose(_DRAWN, note=True)],
        parts=[part for part in _parts(content) if part.blocks],
    ).html()


def _chart(content: FieldContent) -> str:
    rows = content.table.filter(dataset=TEXT)
    start = rows.row(0, named=True)
    marks = [
        mark_of(row["label"], _role(row["label"] == start["label"], row["verdict"]), *_figure(row))
        for row in rows.sort("mean", descending=True, maintain_order=True).iter_rows(named=True)
    ]
    return score_chart(marks, f"{start['metric']} × 100 on your text", line=100 * start["mean"])


def _role(is_start: bool, verdict: str | None) -> str:
    return "before" if is_start else _ROLES.get(verdict or "", "baseline")


def _figure(row: dict[str, float | None]) -> tuple[float, float | None, float | None]:
    return row["mean"] or 0.0, row["ci_low"], row["ci_high"]


def _parts(content: FieldContent) -> Iterator[Part]:
    legend = Prose(LEGEND.replace("*", ""), note=True)
    yield Part("Methods", [Table.of("Figures × 100 with 95 % intervals", method_rows(content)), legend])
    broken = content.methods.filter(pl.col("fault").is_not_null()).rows(named=True)
    faults = [{"method": row["label"], "what": row["fault"]} for row in broken]
    yield Part(
        "What went wrong",
        [Table.of("Methods that could not be tried, ended with an error, or lost what they knew", faults)][
            : len(faults)
        ],
    )
    yield Part("What each was proved on", [_proofs(content)])
    yield Part("How", [Prose(note.replace("`", "")) for note in [*content.notes, *of_seeds(content.table)]])
    yield text_part(content.own)
    yield again_part(content.own)


def _proofs(content: FieldContent) -> Block:
    return Folded("Every method on every proof", [Table.of("Figures × 100", proof_rows(content.table))])
