"""Scores as the papers print them: fixed columns, × 100, an average only where every column has a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

MISSING: Final = "–"


@dataclass(frozen=True)
class PaperTable:
    """A table of the literature.

    Attributes:
        title: what it shows.
        columns: data set, or `<data set>/<subset>` → heading, in the papers' order.
        metrics: which figures; one line for each and for each protocol.
        average: heading of the last column.
    """

    title: str
    columns: dict[str, str]
    metrics: tuple[str, ...]
    average: str = "Avg."


_YEARS: Final = {
    "sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sts15": "STS15", "sts16": "STS16",
    "stsb": "STS-B", "sickr": "SICK-R",
}  # fmt: skip
_TRACKS: Final = {
    f"sts17-{track}": track.upper() for track in ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr")
} | {"sts17-es-en": "EN-ES", "sts17-fr-en": "EN-FR"}
_OTHER_TRACKS: Final = {f"sts17-{track}": track.upper() for track in ("it-en", "nl-en", "ko-ko")}
_PROBES: Final = {
    "mr": "MR", "cr": "CR", "subj": "SUBJ", "mpqa": "MPQA", "sst2": "SST", "trec": "TREC", "mrpc": "MRPC",
}  # fmt: skip

TABLES: Final = (
    PaperTable("Semantic textual similarity (STS13 without SMT)", _YEARS, ("spearman", "pearson")),
    PaperTable(
        "Semantic textual similarity, text as SentEval tokenises it",
        {f"{name}-tok": heading for name, heading in _YEARS.items()},
        ("spearman", "pearson"),
    ),
    PaperTable("STS 2017, the eight tracks of BSL's Table 3", _TRACKS, ("spearman", "pearson")),
    PaperTable("STS 2017, other tracks", _OTHER_TRACKS, ("spearman", "pearson")),
    PaperTable("SentEval transfer", _PROBES, ("accuracy",)),
    PaperTable(
        "Argument facet similarity", {f"afs/{topic}": topic for topic in ("GC", "GM", "DP")}, ("pearson", "spearman")
    ),
)
_SINGLE: Final = ("stsb", "stsb-tok", "sickr", "sickr-tok")  # without subsets, so that all protocols agree
_LATEX: Final = str.maketrans({**{each: f"\\{each}" for each in "&%$#_{}"}, "\\": r"\textbackslash{}", MISSING: "--"})
_COLUMN: Final = pl.when(subset="all").then("dataset").otherwise(pl.concat_str("dataset", "subset", separator="/"))
_STS_PROTOCOLS: Final = ("all", "mean", "wmean")


def paper_tables(scores: pl.DataFrame) -> list[tuple[str, list[dict[str, str]]]]:
    """Title and rows of every table of which at least one figure is there.

    A row is a system under one metric and protocol; a figure that is not there is a dash and leaves no average.
    """
    made = [(table.title, _rows(table, _of(table, scores))) for table in TABLES]
    return [(title, rows) for title, rows in made if rows]


def as_latex(title: str, rows: list[dict[str, str]]) -> str:
    """A LaTeX `tabular` (booktabs) of one table."""
    names = list(rows[0])
    lines = [" & ".join(map(_escaped, line)) + r" \\" for line in (names, *(row.values() for row in rows))]
    head = rf"\begin{{tabular}}{{ll{'c' * (len(names) - 2)}}}"
    return "\n".join(
        [f"% {title}", head, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"]
    )


def _of(table: PaperTable, scores: pl.DataFrame) -> pl.DataFrame:
    chosen = _COLUMN.is_in(list(table.columns)) & pl.col("metric").is_in(table.metrics)
    # Dev and train splits have no place in these tables.
    return scores.filter(chosen & ~pl.col("split").is_in(["dev", "train"]))


def _rows(table: PaperTable, scores: pl.DataFrame) -> list[dict[str, str]]:
    rows = []
    for model, metric in scores.select("model", "metric").unique(maintain_order=True).rows():
        figures = scores.filter(model=model, metric=metric)
        for protocol in figures["protocol"].unique(maintain_order=True):
            values = [_value(figures, dataset, protocol) for dataset in table.columns]
            rows.append({"system": model, "figure": f"{metric}, {protocol}", **_cells(table, values)})
    return rows


def _value(figures: pl.DataFrame, dataset: str, protocol: str) -> float | None:
    shown = "all" if protocol in _STS_PROTOCOLS and dataset in _SINGLE else protocol
    found = figures.filter((dataset == _COLUMN) & (pl.col("protocol") == shown))["value"].to_list()
    return float(found[0]) if found else None


def _cells(table: PaperTable, values: list[float | None]) -> dict[str, str]:
    there = [value for value in values if value is not None]
    mean = sum(there) / len(there) if len(there) == len(values) else None
    headings = (*table.columns.values(), table.average)
    return {
        name: MISSING if value is None else f"{100 * value:.2f}"
        for name, value in zip(headings, (*values, mean), strict=True)
    }


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
