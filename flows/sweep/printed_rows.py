"""Published rows without a listed recipe: the study or command that measures each row, or why there is none."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Final

from bsl.flows.recipes.listing import COLUMN, listings, printed_in
from bsl.flows.recipes.published_rows import COMMANDS, REASONS, ROWS
from bsl.flows.sweep.studies import STUDIES
from bsl.models.evaluation.published import published_rows

_LAPTOP: Final = "tiny-"  # prefix of studies on embedded models, which no paper has


def row_lines() -> list[str]:
    """Return one line per row: name, tables that print it, and the command that measures it."""
    width = COLUMN - 1
    listed = {listing.row for listing in listings() if listing.is_row}
    printed = [row.system for row in published_rows() if row.kind == "paper"]
    others = dict.fromkeys(name for name in [*printed, *COMMANDS] if name not in listed)
    return [f"{row:<{width}} {', '.join(printed_in(row))} · {_measured_by(row)}" for row in others]


def _measured_by(row: str) -> str:
    """Return the command that measures a row, or why there is none."""
    if row in ROWS:
        return f"bsl run {ROWS[row][0]}"
    studies = dict.fromkeys(name for point, name in _points() if point == row)
    return " and ".join(f"bsl sweep {name}" for name in studies) or {**COMMANDS, **REASONS}[row]


@cache
def _points() -> tuple[tuple[str, str], ...]:
    """Return (published row, study) for each point of a study."""
    studies = {name: study for name, study in STUDIES.items() if not name.startswith(_LAPTOP)}
    return tuple(
        (row, name)
        for name, study in studies.items()
        for values in product(*study.over.values())
        if study.row is not None and (row := study.row(values)) is not None
    )
