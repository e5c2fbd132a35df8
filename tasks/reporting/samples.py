"""The section of samples: nearest texts before and after, and texts whose class is now right or now wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.tasks.evaluation.samples import CLASS, NEIGHBOUR
from bsl.tasks.rendering.blocks import Part, Prose, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN: Final = 5  # rows of each table
_DRAWN: Final = (
    "Held-out texts, drawn at random from those that changed. The verdict follows from the figures, not from samples."
)


def sample_part(samples: pl.DataFrame) -> Part:
    """Return the section; `samples` is the table of that name, in random order."""
    tables = [*_neighbours(samples), *_classes(samples)]
    return Part("Samples", [*tables, Prose(_DRAWN, note=True)] if tables else [])


def _neighbours(samples: pl.DataFrame) -> Iterator[Table]:
    found = samples.filter(kind=NEIGHBOUR)
    if found.is_empty():
        return
    answers = [] if found["label"].null_count() == found.height else [pl.col("label").alias("correct answer")]
    rows = found.select("text", nearest_before="before", nearest_after="after").with_columns(found.select(answers))
    title = f"Nearest text before and after: {_some(found)} whose nearest text changed"
    yield Table.of(title, rows.head(_SHOWN).to_dicts())


def _classes(samples: pl.DataFrame) -> Iterator[Table]:
    changed = samples.filter(kind=CLASS)
    for name, side in (("right", "after"), ("wrong", "before")):
        found = changed.filter(pl.col("label") == pl.col(side))
        if found.height:
            rows = found.select("text", "before", "after", true_class="label").head(_SHOWN)
            yield Table.of(f"Class of a linear classifier, now {name}: {_some(found)}", rows.to_dicts())


def _some(found: pl.DataFrame) -> str:
    return f"{min(_SHOWN, found.height)} of {found.height:,} texts"
