"""What an adaptation taught, as one page: the verdict in a sentence, the figures, what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from models.evaluation.forgetting import forgets
from models.evaluation.own_text import ENOUGH, TOO_FEW
from models.evaluation.proof import Evidence
from models.evaluation.study import MEAN as MEAN_OF_SETS
from models.report.differences import signed
from models.report.escaping import plain
from models.report.page import PLACE, PRINTED, markdown_table
from models.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.report.own_text import OwnText

MRR: Final = "MRR is 1 / the place at which the right one is found, averaged."
_ASKED: Final = {
    "neighbour": "the sentence behind it in its document",
    "title": "the title of its document",
    "round trip": "the sentence that a round trip through another language was made of",
    "crop": "the other half of a sentence",
}
_TAUGHT: Final = {"dropout": "two readings under dropout"}
_ROLES: Final = {
    "counts": "decides",
    "guard": "may forbid",
    "shown": "is shown (trained on, a guess, or without interval)",
}
_GENTLER: Final = (
    "The start is kept. Train more gently: lower training.lr, a larger training.objective.anchor_weight (raw_lr and "
    "raw_anchor for a bare transformer), fewer training.max_steps, or more text."
)
_MORE: Final = "More text, or labels (--labels), may show one."


def general_evidence(
    scores: Sequence[pl.DataFrame], comparisons: Sequence[pl.DataFrame], headlines: Mapping[str, Sequence[str]]
) -> list[Evidence]:
    """The differences on general sets as evidence, a figure a set.

    One with an interval may forbid an encoder. Without one nobody knows what chance does, and of many such sets one
    often falls by half a point between encoders that are equally good: they are shown, as the mean is.

    Args:
        scores: tables `scores`, those of the start before those of the adapted encoder.
        comparisons: tables `comparison` of the two; the figures of a set that none compares have no interval.
        headlines: data set → the metrics that stand for it, the first that it has before others.
    """
    if not scores:
        return []
    ranks = [(name, metric, rank) for name, metrics in headlines.items() for rank, metric in enumerate(metrics)]
    ranked = pl.DataFrame(ranks, schema=["dataset", "metric", "rank"], orient="row")
    values = pl.concat(scores).filter(PRINTED).join(ranked, on=["dataset", "metric"], maintain_order="left")
    standing = values.filter(pl.col("rank") == pl.col("rank").min().over("dataset", "split"))
    start, adapted = (rows for _, rows in standing.group_by("model", maintain_order=True))
    both = start.join(adapted.select(*PLACE, after="value"), on=PLACE, maintain_order="left")
    compared = {_place(row): row for table in comparisons for row in table.rows(named=True)}
    rows = [_general(row, compared.get(_place(row), {})) for row in both.rows(named=True)]
    means = [row for row in compared.values() if row["dataset"] == MEAN_OF_SETS]
    return [*rows, *(_general(row | {"value": None, "after": None}, row) for row in means)]


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in PLACE)


def _general(row: Mapping[str, Any], compared: Mapping[str, Any]) -> Evidence:
    """A figure of a set before and after, or of their mean, of which only the difference is known."""
    nothing = float("nan")
    before, after = (nothing if row[name] is None else row[name] for name in ("value", "after"))
    low, high, p_value = (compared.get(name, nothing) for name in ("ci_low", "ci_high", "p_value"))
    protocol = "" if row["protocol"] == "all" else f" ({row['protocol']})"
    return Evidence(
        f"{row['dataset']} {row['split']}{protocol}".strip(),
        "Spearman" if row["metric"] == "spearman" else row["metric"],
        "shown" if row["dataset"] == MEAN_OF_SETS or isnan(low) else "guard",
        before,
        after,
        compared.get("value", after - before),
        low,
        high,
        p_value,
        row["n"],
        0,
    )


def judged(rows: Sequence[Evidence], max_forgetting: float) -> Verdict:
    """The verdict on an adapted encoder.

    Args:
        rows: all evidence; the first that counts decides, it is the mean where several do.
        max_forgetting: points that a general set may lose.
    """
    guards = [row for row in rows if row.role == "guard"]
    lost = min(guards, key=lambda row: row.difference, default=None)
    deciding = next((row for row in rows if row.role == "counts"), None)
    if lost is not None and forgets(lost.difference, max_forgetting / 100):
        reason = f"{_told(lost)}: the figure fell by more than the {max_forgetting:g} points that it may fall"
        if lost.ci_high >= 0:
            reason += ", though chance alone may do that too"
        return Verdict("WORSE", reason, _GENTLER)
    if not any(row.metric == "MRR" for row in rows) and deciding is None:
        return Verdict("NO DIFFERENCE", TOO_FEW, f"The start is kept. Give --labels, or more text: {ENOUGH}.")
    if deciding is None:
        reason = "nothing but the view that was trained on could be asked of this text"
        return Verdict("NO DIFFERENCE", reason, "The start is kept. Give --labels, or text in documents with an order.")
    if deciding.ci_low > 0:
        return Verdict("BETTER", _told(deciding), "Use the adapted encoder on text of this kind.")
    if deciding.ci_high < 0:
        return Verdict("WORSE", _told(deciding), _GENTLER)
    return Verdict("NO DIFFERENCE", _told(deciding), f"The start is kept. {_MORE}")


def _told(row: Evidence) -> str:
    figure = signed(row.difference, row.ci_low, row.ci_high)
    return f"{row.metric} × 100 {figure} on {row.evidence}, p {row.p_value:.3f}"


@dataclass(frozen=True)
class AdaptationContent:
    """What the page is made of.

    Attributes:
        encoder: what the person calls the start.
        verdict: word, reason and advice.
        proof: the table `proof`.
        missing: general sets that could not be asked.
        weighing: the table `weighing`.
        share: how much of the trained weights was taken.
        log: of the training; None where it left none.
        views: what was trained on.
        own: the text, and how to have the same again.
        artifacts: artifact → key.
    """

    encoder: str
    verdict: Verdict
    proof: pl.DataFrame
    missing: Sequence[str]
    weighing: pl.DataFrame
    share: float
    log: pl.DataFrame | None
    views: Sequence[str]
    own: OwnText
    artifacts: Mapping[str, str]


def proof_rows(proof: pl.DataFrame) -> list[dict[str, str]]:
    """The evidence as people read it, × 100."""
    return [
        {
            "find or order": ": ".join(filter(None, [row["evidence"], _ASKED.get(row["evidence"], "")])),
            "among": f"{row['among']:,}" if row["among"] else "",
            "n": f"{row['n']:,}",
            "figure": row["metric"],
            "before": _percent(row["before"]),
            "after": _percent(row["after"]),
            "difference": signed(row["difference"], row["ci_low"], row["ci_high"]),
            "p": "" if row["p_value"] is None else f"{row['p_value']:.3f}",
            "it": _ROLES[row["role"]],
        }
        for row in proof.iter_rows(named=True)
    ]


def _narrow(row: Mapping[str, str]) -> dict[str, str]:
    """A row whose difference stands before what may leave the UI's page: what was asked, in full, comes last."""
    first = ("difference", "p", "before", "after", "figure", "it")
    asked, _, _ = row["find or order"].partition(": ")  # a name may have a colon: embedded:stsb
    return {"of": asked, **{name: row[name] for name in first}, "n": row["n"], "in full": row["find or order"]}


def unasked(missing: Sequence[str]) -> str:
    """Which general sets say nothing of what was forgotten; empty where all were asked."""
    return f"Not asked, for they cannot be had here: {', '.join(missing)}." if missing else ""


def exported(verdict: Verdict) -> str:
    """Which encoder is handed out."""
    return "the adapted encoder" if verdict.word == "BETTER" else "the start, unchanged"


def _percent(value: float | None) -> str:
    """A figure × 100; a dash for the mean of sets, of which only the difference is known."""
    return "–" if value is None else f"{100 * value:.1f}"


def adaptation_page(content: AdaptationContent) -> str:
    """The page, in Markdown."""
    verdict = content.verdict
    return (
        "\n\n".join(
            [
                f"# {plain(content.encoder)} adapted to your text",
                verdict.sentence,
                f"Exported: {exported(verdict)}.",
                "## Proof\n\nOn documents that were held out and chose nothing; 95 % intervals, by drawing documents, "
                f"of long ones runs of sentences. {MRR}",
                markdown_table([_narrow(row) for row in proof_rows(content.proof)]),
                *filter(None, [unasked(content.missing)]),
                f"## What was learnt\n\n{learnt(content)}",
                markdown_table(weighed(content.weighing)),
                taken(content.share),
                "## Your files",
                markdown_table(content.own.files),
                *([plain(content.own.labels)] if content.own.labels else []),
                markdown_table([{"what": name, "figure": str(value)} for name, value in content.own.counts.items()]),
                f"## Settings\n\n```json\n{content.own.settings}\n```",
                "## Artifacts",
                markdown_table([{"artifact": name, "key": key} for name, key in content.artifacts.items()]),
            ]
        )
        + "\n"
    )


def learnt(content: AdaptationContent) -> str:
    """What training brought together, in a sentence."""
    return (
        f"That {spelled(content.views)} of a sentence belong together, on sentences of your text. Each share of the "
        "trained weights was asked of the half that chooses:"
    )


def taken(share: float) -> str:
    """How much of the trained weights is handed out, in a sentence."""
    return f"Taken: {100 * share:g} % of the trained weights{'' if share == 1 else ', the rest from the start'}."


def spelled(views: Sequence[str]) -> str:
    """Names of views, as a sentence has them."""
    return " and ".join(_TAUGHT.get(view, view) for view in views)


def weighed(weighing: pl.DataFrame) -> list[dict[str, str]]:
    """A row a share, a column a probe; what decides is marked."""
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
