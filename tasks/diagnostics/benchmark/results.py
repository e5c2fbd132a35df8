"""What a bench found, as rows of two tables: checks, which may fail, and rates, which may not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

from models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Verdict = Literal["met", "MISSED", "not run"]
FAULTS: Final = (RuntimeError, OSError, ValueError, ImportError, MemoryError, ModelError)
"""What a machine may raise that lacks something: memory, a compiler, a kernel, a package."""


@dataclass(frozen=True)
class Check:
    """Something that must hold.

    Attributes:
        name: what is compared.
        found: the figure, or why there is none.
        bound: what it must not exceed, or must reach.
        verdict: whether it does.
    """

    name: str
    found: str
    bound: str
    verdict: Verdict


@dataclass(frozen=True)
class Rate:
    """How fast something is.

    Attributes:
        name: the work.
        rate: of it a second.
        unit: of the rate.
        share: of the limit, 0 to 1; None where none is stated.
        limit: which limit that is.
        ratio: to the peer above it in the table; None for the peer itself, or where there is none.
    """

    name: str
    rate: float
    unit: str
    share: float | None = None
    limit: str = ""
    ratio: float | None = None


def at_most(name: str, found: float, bound: float) -> Check:
    """A check of a figure that must not exceed a bound; NaN does."""
    return Check(name, f"{found:.2g}", f"≤ {bound:g}", "met" if found <= bound else "MISSED")


def at_least(name: str, found: float, bound: float) -> Check:
    """A check of a share that must reach a bound; NaN does not."""
    return Check(name, f"{found:.4f}", f"≥ {bound:g}", "met" if found >= bound else "MISSED")


def holds(name: str, right: bool, found: str) -> Check:
    """A check of something that is so or is not."""
    return Check(name, found, "so", "met" if right else "MISSED")


def not_run(name: str, why: str) -> Check:
    """A check that this machine cannot make."""
    return Check(name, why, "", "not run")


def as_far_as_it_goes(section: str, rows: Iterable[Check | Rate], *, must: bool) -> Iterator[Check | Rate]:
    """A section's rows; where it breaks off, a last row says why, and what was measured before it stays.

    Args:
        section: for people.
        rows: made one by one.
        must: whether a section that breaks off is a check missed, or only one that this machine cannot make.
    """
    try:
        yield from rows
    except FAULTS as error:
        name = f"{section}: to its end"
        yield holds(name, False, reason(error)) if must else not_run(name, reason(error))


def reason(error: BaseException) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {(str(error).strip() or 'no word').splitlines()[0]}"


def spelled(row: Check | Rate) -> str:
    """A row as a line that comes while the others are still being measured."""
    if isinstance(row, Check):
        return f"{row.verdict}: {row.name}: {row.found}{f' ({row.bound})' if row.bound else ''}"
    share = "" if row.share is None else f", {row.share:.1%} of {row.limit}"
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} × peer"
    return f"{row.name}: {row.rate:,.0f} {row.unit}{share}{ratio}"


def markdown(title: str, rows: Sequence[Check | Rate]) -> str:
    """Both tables, those that have rows."""
    checks = [row for row in rows if isinstance(row, Check)]
    rates = [row for row in rows if isinstance(row, Rate)]
    parts = [title]
    if checks:
        lines = [f"| {check.name} | {check.found} | {check.bound} | {check.verdict} |" for check in checks]
        parts.append("\n".join(["| check | found | bound | |", "|---|--:|--:|---|", *lines]))
    if rates:
        lines = [_line(rate) for rate in rates]
        parts.append("\n".join(["| work | rate | share of the limit | × peer |", "|---|--:|--:|--:|", *lines]))
    return "\n\n".join(parts)


def _line(rate: Rate) -> str:
    share = "" if rate.share is None else f"{rate.share:.1%} of {rate.limit}"
    ratio = "" if rate.ratio is None else f"{rate.ratio:.2f}"
    return f"| {rate.name} | {rate.rate:,.0f} {rate.unit} | {share} | {ratio} |"


def as_json(rows: Sequence[Check | Rate]) -> list[dict[str, object]]:
    """The rows as they are."""
    return [asdict(row) for row in rows]
