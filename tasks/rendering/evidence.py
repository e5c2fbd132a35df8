"""Tables of an adaptation's evidence: scores before and after, and the scores of each merging share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.evaluation.signature import signed
from tasks.rendering.numbers import p_value

if TYPE_CHECKING:
    import polars as pl

MRR: Final = "MRR is 1 / the place at which the right one is found, averaged."
_ASKED: Final = {
    "neighbour": "the sentence behind it in its document",
    "title": "the title of its document",
    "round trip": "the source sentence of a round trip through another language",
    "crop": "the other half of a sentence",
}
_ROLES: Final = {
    "counts": "decides",
    "guard": "may forbid",
    "shown": "is shown",
}


def proof_rows(proof: pl.DataFrame) -> list[dict[str, str]]:
    """Return a row per piece of evidence, × 100; columns that may exceed the Prefect UI's narrow page come last."""
    return [
        {
            "of": row["evidence"],
            "difference": signed(row["difference"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"]),
            "before": _percent(row["before"]),
            "after": _percent(row["after"]),
            "figure": row["metric"],
            "it": _ROLES[row["role"]],
            "n": f"{row['n']:,}",
            "among": f"{row['among']:,}" if row["among"] else "",
            "to find": _ASKED.get(row["evidence"], ""),
        }
        for row in proof.iter_rows(named=True)
    ]


def weighed(weighing: pl.DataFrame) -> list[dict[str, str]]:
    """Return a row per share with a column per probe; deciding probes are marked."""
    asked = weighing.select("probe", "counts").unique(maintain_order=True).rows()
    figures = {(share, probe): value for share, probe, value, _ in weighing.rows()}

    def shown(share: float, probe: str) -> str:
        return f"{100 * figures[share, probe]:.1f}" if (share, probe) in figures else ""

    return [
        {
            "share": f"{share:g}",
            **{f"{probe} (decides)" if counts else probe: shown(share, probe) for probe, counts in asked},
        }
        for share in weighing["share"].unique(maintain_order=True)
    ]


def _percent(value: float | None) -> str:
    """Return a score × 100; a dash for a mean of sets, which has only a difference."""
    return "–" if value is None else f"{100 * value:.1f}"
