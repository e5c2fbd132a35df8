"""Tables of scores: scores with intervals, differences, signatures, missing sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.evaluation.signature import PLACE, PRINTED, joint_signature, with_sign
from bsl.storage.datasets.registry import DATASETS, headings_of, pairs_of
from bsl.tasks.rendering.blocks import Folded, Table
from bsl.tasks.rendering.numbers import MISSING, p_value

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERVALS: Final = "Figures × 100 with their 95 % intervals"
_SUITE: Final = "senteval"
_COMPARED: Final = "Differences × 100 on the same bootstrap draws, with 95 % interval and p"
_CORRECTED: Final = ", corrected by Holm's method for the number of systems compared"


def score_rows(scores: pl.DataFrame) -> list[dict[str, str]]:
    """Return a row per figure of a dataset, a column per system: `value × 100 [low, high]`; no means over subsets."""
    chosen = scores.filter(PRINTED)
    systems = chosen["model"].unique(maintain_order=True).to_list()
    rows = []
    for place in chosen.select(*PLACE).unique(maintain_order=True).iter_rows(named=True):
        figures = {row["model"]: figure_cell(row) for row in chosen.filter(**place).iter_rows(named=True)}
        name = f"{place['dataset']} {place['split']}: {place['metric']}, {place['protocol']}"
        rows.append({"figure": name, **{str(system): figures.get(system, MISSING) for system in systems}})
    return rows


def mean_rows(scores: pl.DataFrame) -> list[dict[str, str]]:
    """Return a row per metric and protocol with several sets: each system's mean × 100 over the shared sets.

    Raw and tokenised text of the same pairs count as one set. These are test sets; of SentEval, the sets with a column
    in the papers' tables, also those that are cross-validated.
    """
    is_transfer = pl.col("dataset").is_in([name for name, declared in DATASETS.items() if _SUITE in declared.suites])
    is_averaged = (
        pl.when(is_transfer).then(pl.col("dataset").is_in([*headings_of(_SUITE)])).otherwise(pl.col("split") == "test")
    )
    chosen = scores.filter(PRINTED & is_averaged)
    systems = chosen["model"].unique(maintain_order=True).to_list()
    shared = chosen.filter(pl.col("model").n_unique().over("dataset", "metric", "protocol") == len(systems))
    rows = []
    for (metric, protocol), group in shared.group_by("metric", "protocol", maintain_order=True):
        pairs = pl.Series("pairs", [pairs_of(name) for name in group["dataset"]])
        if (sets := pairs.n_unique()) > 1:
            values = group.with_columns(pairs).group_by("model", "pairs").agg(pl.col("value").mean())
            figures = dict(values.group_by("model").agg(pl.col("value").mean()).rows())
            means = {system: f"{100 * figures[system]:.2f}" for system in systems}
            kind = "test sets" if (group["split"] == "test").all() else "sets"
            rows.append({"figure": f"mean of {sets} {kind}: {metric}, {protocol}", **means})
    return rows


def all_scores(scores: pl.DataFrame) -> Folded:
    """Return `score_rows` with a row per system: three systems in columns would not fit the page of the Prefect UI."""
    lines = [
        {"figure": row["figure"], "system": system, "value": value}
        for row in score_rows(scores)
        for system, value in row.items()
        if system != "figure"
    ]
    return Folded("All figures", [Table.of(INTERVALS, lines)])


def difference_rows(comparison: pl.DataFrame, draws: int | None = None) -> list[dict[str, str]]:
    """Return a row per pair of systems and set: difference × 100, interval, p (Holm's) of a number of draws."""
    count = systems_compared(comparison)
    rows = comparison.filter(pl.col("metric") != "pearson").to_dicts()
    return [
        {
            "system": row["model"],
            "compared with": row["reference"],
            "set": f"{row['dataset']} {row['split']}{'' if row['metric'] == 'spearman' else ', ' + row['metric']}",
            "difference": with_sign(row["value"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"], draws, count),
        }
        for row in rows
    ]


def difference_table(comparison: pl.DataFrame, draws: int | None = None) -> Table:
    """Return the table of `difference_rows`."""
    return Table.of(holm_named(_COMPARED, comparison), difference_rows(comparison, draws))


def holm_named(title: str, comparison: pl.DataFrame) -> str:
    """Return the title of a table of differences, which names the correction of p if there is one."""
    return f"{title}{_CORRECTED}" if systems_compared(comparison) > 1 else title


def systems_compared(comparison: pl.DataFrame) -> int:
    """Return the largest number of systems that are compared with one reference."""
    return int(comparison.select(pl.col("model").n_unique().over("reference").max()).item() or 0)


def signature_rows(scores: pl.DataFrame) -> list[dict[str, str]]:
    """Return the signatures of the printed figures, one per system, metric and protocol."""
    groups = scores.filter(PRINTED).group_by("model", "metric", "protocol", maintain_order=True)
    return [
        {"figures": f"{model}, {metric}, {protocol}", "signature": joint_signature(rows["signature"].to_list())}
        for (model, metric, protocol), rows in groups
    ]


def signatures(scores: pl.DataFrame) -> Table:
    """Return the table of `signature_rows`."""
    return Table.of("Lines to cite with the figures", signature_rows(scores))


def missing_sets(reasons: Mapping[str, str]) -> Table:
    """Return the sets that could not be scored, with the reason."""
    return Table.of("Not scored, and not part of any average", [{"set": k, "reason": v} for k, v in reasons.items()])


def figure_cell(row: Mapping[str, Any]) -> str:
    """Return `value × 100 [low, high]` of a row of the table `scores`; a standard deviation has no interval."""
    if row["ci_low"] is None:
        return f"{100 * row['value']:.2f}"
    return f"{100 * row['value']:.2f} [{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}]"
