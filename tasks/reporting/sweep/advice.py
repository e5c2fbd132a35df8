"""Advice on the system to use for the user's text: its certainty and cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from models.evaluation.signature import signed
from storage.artifacts.refs import ENCODER
from tasks.rendering.numbers import p_value, spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from models.evaluation.sweep import Ranking

TEXT: Final = "your text"
"""Name of the figure that decides: labels, else the mean over questions."""


@dataclass(frozen=True)
class Choice:
    """The best system on the user's text.

    Attributes:
        ranking: the best system, how far the others are behind, and which of them forget.
        costs: the table `costs`.
        store: URL of the store with the encoders.
    """

    ranking: Ranking
    costs: pl.DataFrame
    store: str


def advice(table: pl.DataFrame, choice: Choice) -> list[str]:
    """Return sentences of advice: the best system, its significance and cost, and higher systems that were rejected."""
    rows = {row["label"]: row for row in table.filter(dataset=TEXT).drop_nulls("mean").iter_rows(named=True)}
    start = next(iter(rows))
    if not choice.ranking.behind:
        failed = f"{choice.costs.height - 1} were not available or failed"
        return [f"Keep the original encoder: no other method has figures ({failed})."]
    best = choice.ranking.best
    sentences = [_choice(rows, start, best)]
    if rows[best]["verdict"] == "above":
        sentences += [_significance(choice.ranking), _cost(choice, best)]
    return sentences + _higher(choice, rows, best)


def cost_rows(choice: Choice) -> list[dict[str, str]]:
    """Return a row per system: how far behind the best, whether it forgets, steps, seconds."""
    rows, forgets = [], choice.ranking.forgets
    for row in choice.costs.iter_rows(named=True):
        label, low, high = row["label"], row["behind_low"], row["behind_high"]
        lead = None if row["behind"] is None else signed(-row["behind"], -high, -low)
        rows.append(
            {
                "system": label,
                "compared with the best": "" if lead is None else f"{lead}, p {p_value(row['behind_p'])}",
                "check": f"forgets ({100 * forgets[label]:+.1f})" if label in forgets else "",
                "steps": f"{row['steps']:,}" if row["steps"] else "",
                "seconds": "" if row["seconds"] is None else f"{row['seconds']:.0f}",
                "translation seconds": ""
                if row["translation_seconds"] is None
                else f"{row['translation_seconds']:.0f}",
            }
        )
    return rows


def _choice(rows: Mapping[str, Mapping[str, Any]], start: str, best: str) -> str:
    row = rows[best]
    if best == start:
        return f"Keep the original encoder: no eligible method is higher than its {_mean(row)}."
    figures = f"{_mean(row)} compared with {_mean(rows[start])}, {_difference(row)}, p {p_value(row['p_value'])}"
    if row["verdict"] == "above":
        return f"Use {best}: {figures} on your text."
    return f"Keep the original encoder: no method is significantly above it on your text (highest: {best}, {figures})."


def _higher(choice: Choice, rows: Mapping[str, Mapping[str, Any]], best: str) -> list[str]:
    """Return why systems with higher figures were not chosen: the highest uncertain one, the highest that forgets."""
    above = [label for label, row in rows.items() if row["mean"] > rows[best]["mean"]]
    above.sort(key=lambda label: rows[label]["mean"], reverse=True)
    unsure = next((label for label in above if label not in choice.ranking.forgets), None)
    forgets = next((label for label in above if label in choice.ranking.forgets), None)
    sentences = []
    if unsure is not None:
        figures = f"{_difference(rows[unsure])}, p {p_value(rows[unsure]['p_value'])}"
        sentences.append(
            f"{unsure} is higher on your text ({_mean(rows[unsure])}), but not significantly above the original "
            f"encoder: {figures}."
        )
    if forgets is not None:
        sentences.append(
            f"{forgets} is higher on your text ({_mean(rows[forgets])}), but its figure on the check drops by "
            f"{-100 * choice.ranking.forgets[forgets]:.1f}: use it for this text only."
        )
    return sentences


def _significance(ranking: Ranking) -> str:
    near = {label: behind for label, behind in ranking.behind.items() if behind.verdict != "above"}
    if not near:
        return "It is significantly above every other method."
    names = ", ".join(f"{label} ({100 * -behind.value:+.1f})" for label, behind in near.items())
    beaten = len(ranking.behind) - len(near)
    rest = f"; it is significantly above the other {beaten}" if beaten else ""
    return f"It has no significant difference from {names}{rest}."


def _cost(choice: Choice, best: str) -> str:
    row = choice.costs.filter(label=best).row(0, named=True)
    training, translation = row["seconds"] or 0.0, row["translation_seconds"] or 0.0
    steps = f" ({row['steps']:,} steps)" if row["steps"] else ""
    shared = f", and {translation:.0f} s of translation" if translation else ""
    cost = f"It took {training:.0f} s of training{steps}{shared}"
    if row["checkpoint"] is None:
        return f"{cost}. It has no encoder folder for other programs; only this pipeline can compute its vectors."
    return (
        f"{cost}. The encoder (opens with SentenceTransformer): {choice.store}/checkpoint/{row['checkpoint']}/{ENCODER}"
    )


def _mean(row: Mapping[str, Any]) -> str:
    return spread(row["mean"], row["sd"])


def _difference(row: Mapping[str, Any]) -> str:
    return signed(row["difference"], row["difference_low"], row["difference_high"])
