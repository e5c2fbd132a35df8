"""The page of `bsl field`: which method to use on a person's text, how sure that is, what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from models.evaluation.signature import signed
from tasks.rendering.blocks import Charts, Folded, Page, Part, Prose, Table
from tasks.rendering.numbers import interval, p_value, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.evaluation.sweep import Ranking
    from tasks.rendering.svg import Chart

TEXT: Final = "your text"
"""The mean of what decides."""
_ROLES: Final = {"above": "after", "below": "published"}
_DRAWN: Final = (
    "Mean over what was asked of held-out text, with 95 % interval; the line is the encoder as it is. A diamond is "
    "above it for sure, a cross below it for sure, a square cannot be told apart."
)
_LEGEND: Final = (
    "Figures × 100 with 95 % intervals over what was asked, drawn by document, of long ones by run. Difference is "
    "from the encoder as it is, on the same draws; above and below only where its interval leaves out 0 and p "
    "after Holm's correction over all methods is below 0.05. Beside the best is corrected over all pairs of "
    "methods, for which one is best was not known before; the best is the highest of those above, if there are any. "
    "Forgets: the figure on the check fell by more than it may, sure or not; such a method is not chosen."
)
_ONE_SEED: Final = (
    "One seed: another one would move every trained figure by what the intervals do not know. Run again with "
    "--seeds 3 before a small difference decides anything."
)


@dataclass(frozen=True)
class FieldContent:
    """The content of the page.

    Attributes:
        title: whose text, from which encoder.
        table: the table `field`; its first label is the encoder as it is.
        methods: the table `field_methods`, in the order of the methods.
        ranking: the best and how far the others are behind; None where only one method has figures.
        forgets: label → how much it lost on what it is checked by, for methods that lost too much to be chosen.
        folders: label → the folder of its encoder, for methods that have one.
        notes: what was held out, how the budget was spent, what was asked.
    """

    title: str
    table: pl.DataFrame
    methods: pl.DataFrame
    ranking: Ranking | None
    forgets: Mapping[str, float]
    folders: Mapping[str, str]
    notes: Sequence[str]


def field_page(content: FieldContent, own: Sequence[Part]) -> Page:
    """Return the page: which method to use, all of them on one axis, then the tables.

    Args:
        content: the methods and their figures.
        own: the sections on the text and on how to reproduce the page.
    """
    said = advice(content)
    broken = content.methods.filter(pl.col("fault").is_not_null()).rows(named=True)
    faults = [{"method": row["label"], "error": row["fault"]} for row in broken]
    proofs = Table.of("Figures × 100", proof_rows(content.table))
    methods = Table.of("Figures × 100 with 95 % intervals", method_rows(content))
    return Page(
        title=content.title,
        word="",
        sentence=said[0],
        lead=[*map(Prose, said[1:]), Charts([field_chart(content.table)], lead=True), Prose(_DRAWN, note=True)],
        parts=[
            Part("Methods", [methods, Prose(_LEGEND, note=True)]),
            Part("Errors", [Table.of("Methods without figures or with collapsed vectors", faults)] if faults else []),
            Part("Figures by question", [Folded("Every method on every question", [proofs])]),
            Part("Method of the comparison", [Prose(note) for note in [*content.notes, *of_seeds(content.table)]]),
            *own,
        ],
    )


def field_chart(table: pl.DataFrame) -> Chart:
    """Return every method's figure on the text, the encoder as it is as the line to pass.

    Args:
        table: the table `field`.
    """
    from tasks.rendering.charts import mark_of, score_chart  # matplotlib

    rows = table.filter(dataset=TEXT)
    start = rows.row(0, named=True)
    marks = [
        mark_of(row["label"], _role(row, start["label"]), row["mean"], row["ci_low"], row["ci_high"])
        for row in rows.sort("mean", descending=True, maintain_order=True).iter_rows(named=True)
    ]
    return score_chart(marks, f"{start['metric']} × 100 on your text", line=100 * start["mean"])


def _role(row: Mapping[str, Any], start: str) -> str:
    return "before" if row["label"] == start else _ROLES.get(row["verdict"] or "", "baseline")


def advice(content: FieldContent) -> list[str]:
    """Return which method to use, how sure that is, what it costs: a few sentences, the first of which names it."""
    rows = {row["label"]: row for row in content.table.filter(dataset=TEXT).iter_rows(named=True)}
    start = next(iter(rows))
    if content.ranking is None:
        return [f"Keep the encoder as it is: no other method has figures ({_count_faults(content.methods)})."]
    best = content.ranking.best
    said = [_choice(rows, start, best)]
    if rows[best]["verdict"] == "above":
        said += [_sureness(content.ranking), _cost(content, best)]
    return said + _higher(content, rows, best)


def method_rows(content: FieldContent) -> list[dict[str, str]]:
    """One row a method, the highest figure first, those without figures last."""
    rows = {row["label"]: row for row in content.table.filter(dataset=TEXT).iter_rows(named=True)}
    place = {label: number for number, label in enumerate(sorted(rows, key=lambda label: -rows[label]["mean"]))}
    methods = sorted(content.methods.iter_rows(named=True), key=lambda method: place.get(method["label"], len(place)))
    return [_method_row(content, method, rows.get(method["label"])) for method in methods]


def summary_rows(content: FieldContent) -> list[dict[str, str]]:
    """As `method_rows`, what a terminal has room for."""
    wanted = ("method", TEXT, "difference", "p", "beside the start", "check", "steps", "seconds")
    return [{name: row[name] for name in wanted} for row in method_rows(content)]


def proof_rows(table: pl.DataFrame) -> list[dict[str, str]]:
    """One row a method and proof."""
    return [
        {
            "proof": row["dataset"],
            "method": row["label"],
            "figure": row["metric"],
            "value": _mean(row),
            "95 % interval": interval(row["ci_low"], row["ci_high"], 1),
            "difference": _difference(row),
            "p": p_value(row["p_value"]),
            "beside the start": row["verdict"] or "",
            "decides": "yes" if row["decides"] else "no",
        }
        for row in table.filter(pl.col("dataset") != TEXT).iter_rows(named=True)
    ]


def _choice(rows: Mapping[str, Mapping[str, Any]], start: str, best: str) -> str:
    row = rows[best]
    if best == start:
        return f"Keep the encoder as it is: no method that may be chosen is higher than its {_mean(row)}."
    held = f"{_mean(row)} beside {_mean(rows[start])}, {_difference(row)}, p {p_value(row['p_value'])}"
    if row["verdict"] == "above":
        return f"Use {best}: {held} on your text."
    return f"Keep the encoder as it is: nothing is above it for sure; highest is {best}, {held} on your text."


def _higher(content: FieldContent, rows: Mapping[str, Mapping[str, Any]], best: str) -> list[str]:
    """What has a higher figure and was not chosen, and why: the highest that is unsure, the highest that forgets."""
    above = [label for label, row in rows.items() if row["mean"] > rows[best]["mean"]]
    above.sort(key=lambda label: rows[label]["mean"], reverse=True)
    unsure = next((label for label in above if label not in content.forgets), None)
    forgets = next((label for label in above if label in content.forgets), None)
    said = []
    if unsure is not None:
        held = f"{_difference(rows[unsure])}, p {p_value(rows[unsure]['p_value'])}"
        said.append(
            f"{unsure} is higher on your text ({_mean(rows[unsure])}), but not above the encoder as it is for "
            f"sure: {held}."
        )
    if forgets is not None:
        said.append(
            f"{forgets} is higher on your text ({_mean(rows[forgets])}), but its figure on the check falls by "
            f"{-100 * content.forgets[forgets]:.1f}: it is for this text alone."
        )
    return said


def _sureness(ranking: Ranking) -> str:
    near = [standing for standing in ranking.others if not standing.beaten]
    if not near:
        return "It is above every other method for sure."
    names = ", ".join(f"{standing.label} ({100 * -standing.behind.value:+.1f})" for standing in near)
    beaten = len(ranking.others) - len(near)
    return f"It cannot be told apart from {names}{f'; it is above the other {beaten} for sure' if beaten else ''}."


def _cost(content: FieldContent, best: str) -> str:
    method = content.methods.filter(label=best).row(0, named=True)
    folder = content.folders.get(best)
    cost = f"It cost {_seconds(method)}"
    if folder is None:
        return f"{cost}. It leaves no encoder that another program could open: its vectors are made by this pipeline."
    return f"{cost}. The encoder (opens with SentenceTransformer): {folder}"


def _seconds(method: Mapping[str, Any]) -> str:
    own, translation = method["seconds"] or 0.0, method["translation_seconds"] or 0.0
    steps = f" ({method['steps']:,} steps)" if method["steps"] else ""
    shared = f", and {translation:.0f} s of translation" if translation else ""
    return f"{own:.0f} s of training{steps}{shared}"


def _method_row(content: FieldContent, method: Mapping[str, Any], row: Mapping[str, Any] | None) -> dict[str, str]:
    label = method["label"]
    lost = f"forgets ({100 * content.forgets[label]:+.1f})" if label in content.forgets else ""
    lead, low, high = (method[name] for name in ("behind", "behind_low", "behind_high"))
    return {
        "method": label,
        TEXT: "–" if row is None else _mean(row),
        "95 % interval": "" if row is None else interval(row["ci_low"], row["ci_high"], 1),
        "difference": "" if row is None else _difference(row),
        "p": "" if row is None else p_value(row["p_value"]),
        "beside the start": "no figures" if row is None else row["verdict"] or "the start",
        "beside the best": "" if lead is None else f"{signed(-lead, -high, -low)}, p {p_value(method['behind_p'])}",
        "check": lost,
        "steps": f"{method['steps']:,}" if method["steps"] else "",
        "seconds": "" if method["seconds"] is None else f"{method['seconds']:.0f}",
        "of translation": "" if method["translation_seconds"] is None else f"{method['translation_seconds']:.0f}",
    }


def _count_faults(methods: pl.DataFrame) -> str:
    return f"{methods['fault'].count()} of {methods.height} could not be tried or ended with an error"


def of_seeds(table: pl.DataFrame) -> list[str]:
    """What one seed cannot tell."""
    return [_ONE_SEED] if table["seeds"].max() == 1 else []


def _mean(row: Mapping[str, Any]) -> str:
    return spread(row["mean"], row["sd"])


def _difference(row: Mapping[str, Any]) -> str:
    return signed(row["difference"], row["difference_low"], row["difference_high"])
