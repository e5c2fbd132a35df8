"""Tables of scores: with intervals, differences, signatures, missing sets; before and after an adaptation, by share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.evaluation.signature import PLACE, PRINTED, joint_signature, with_sign
from bsl.models.evaluation.uses import USES
from bsl.tasks.rendering.blocks import Folded, Prose, Table
from bsl.tasks.rendering.numbers import MISSING, p_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.tasks.rendering.blocks import Block

INTERVALS: Final = "Figures × 100 with their 95 % intervals"
MRR: Final = "MRR (mean reciprocal rank) is the mean of 1 / rank of the correct answer."
_ANSWERS: Final = {
    "neighbour": "the next sentence of the document",
    "title": "the title of the document",
    "round trip": "the source sentence of a round trip through another language",
    "crop": "the other half of the sentence",
}
_ROLES: Final = {"decides": "decides", "vetoes": "can veto", "reported": "reported only"}
_COMPARED: Final = "Differences × 100 on the same bootstrap draws, with 95 % interval and p"


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
    """Return a row per metric and protocol with several test sets: each system's mean × 100 over the shared sets."""
    chosen = scores.filter(PRINTED & (pl.col("split") == "test"))
    systems = chosen["model"].unique(maintain_order=True).to_list()
    shared = chosen.filter(pl.col("model").n_unique().over("dataset", "metric", "protocol") == len(systems))
    rows = []
    for (metric, protocol), group in shared.group_by("metric", "protocol", maintain_order=True):
        if (sets := group["dataset"].n_unique()) > 1:
            means = {system: f"{100 * _mean(group.filter(model=system)):.2f}" for system in systems}
            rows.append({"figure": f"mean of {sets} test sets: {metric}, {protocol}", **means})
    return rows


def _mean(rows: pl.DataFrame) -> float:
    return float(rows["value"].to_numpy().mean())


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
    """Return a row per pair of systems and set: difference × 100, interval, p of a number of draws."""
    rows = comparison.filter(pl.col("metric") != "pearson").to_dicts()
    return [
        {
            "system": row["model"],
            "compared with": row["reference"],
            "set": f"{row['dataset']} {row['split']}{'' if row['metric'] == 'spearman' else ', ' + row['metric']}",
            "difference": with_sign(row["value"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"], draws),
        }
        for row in rows
    ]


def difference_table(comparison: pl.DataFrame, draws: int | None = None) -> Table:
    """Return the table of `difference_rows`."""
    return Table.of(_COMPARED, difference_rows(comparison, draws))


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


def answer_blocks(proof: pl.DataFrame, draws: int | None = None) -> list[Block]:
    """Return the answer for each use of the encoder, and the question it answers; nothing without an answer.

    Args:
        proof: The table `proof`.
        draws: Number of bootstrap draws, which limits p.
    """
    rows = answer_rows(proof, draws)
    if not rows:
        return []
    table = Table.of("Before → after × 100, with the 95 % interval of the difference", rows)
    uses = [USES[use] for use in proof["use"].drop_nulls()]
    return [table, *(Prose(f"{use.title.capitalize()}: {use.question}", note=True) for use in uses)]


def answer_rows(proof: pl.DataFrame, draws: int | None = None) -> list[dict[str, str]]:
    """Return a row per use of the encoder: better, same or worse, before → after × 100, and how it is measured."""
    return [
        {
            "use": USES[row["use"]].title,
            "answer": answer_of(row),
            "before → after": f"{100 * row['before']:.1f} → {100 * row['after']:.1f}",
            "difference": with_sign(row["difference"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"], draws),
            "role": _ROLES[row["role"]],
            "n": f"{row['n']:,}",
            "measure": f"{USES[row['use']].measure}{_question(row['evidence'])}",
        }
        for row in proof.filter(pl.col("use").is_not_null()).iter_rows(named=True)
    ]


def _question(evidence: str) -> str:
    return f" ({_ANSWERS[evidence]})" if evidence in _ANSWERS else ""


def answer_of(row: Mapping[str, Any]) -> str:
    """Return whether a row of the table `proof` is better or worse; `same` if its interval includes 0."""
    return "better" if row["ci_low"] > 0 else "worse" if row["ci_high"] < 0 else "same"


def proof_rows(proof: pl.DataFrame, draws: int | None = None) -> list[dict[str, str]]:
    """Return a row per piece of evidence, × 100; columns that may not fit the narrow page of the UI come last."""
    return [
        {
            "evidence": row["evidence"],
            "difference": with_sign(row["difference"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"], draws),
            "before": f"{100 * row['before']:.1f}",
            "after": f"{100 * row['after']:.1f}",
            "metric": row["metric"],
            "role": _ROLES[row["role"]],
            "n": f"{row['n']:,}",
            "correct answer": _ANSWERS.get(row["evidence"], ""),
        }
        for row in proof.iter_rows(named=True)
    ]


def share_tables(weighing: pl.DataFrame) -> list[Table]:
    """Return the general score of each share of the trained weights; nothing if no share was scored."""
    rows = [{"share": f"{share:g}", "general dev set": f"{100 * value:.1f}"} for share, value in weighing.iter_rows()]
    return [Table.of("General dev set × 100 by share", rows)] if rows else []
