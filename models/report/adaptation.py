"""What an adaptation taught, as one page: the verdict in a sentence, the figures, what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.forgetting import forgets
from models.evaluation.own_text import FEWEST, FEWEST_UNITS
from models.evaluation.proof import MEAN, Evidence
from models.evaluation.study import MEAN as MEAN_OF_SETS
from models.report.escaping import plain
from models.report.page import markdown_table
from models.report.verdict import Verdict
from models.text.passages import DRAWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.report.own_text import OwnText

_ASKED: Final = {
    "neighbour": "the sentence behind it in its document",
    "title": "the title of its document",
    "round trip": "the sentence that a round trip through another language was made of",
    "crop": "the other half of a sentence",
    MEAN: "all that counts, on average",
    "labels": "your labels",
}
_ROLES: Final = {"counts": "decides", "guard": "may forbid", "shown": "is shown (trained on, or a guess)"}
_GENTLER: Final = (
    "The start is kept. Train more gently: a larger training.objective.anchor_weight, lower training.lr (raw_lr for a "
    "bare transformer), fewer training.max_steps, or more text."
)
_TOO_FEW: Final = (
    f"too few documents to tell: those that were held out leave no {FEWEST} questions of {FEWEST_UNITS} of them, or of as "
    f"many runs of {DRAWN} sentences"
)
_ENOUGH: Final = "Give --labels, or more text: 100 documents, or 2,000 sentences in fewer, are usually enough."
_MORE: Final = "More text, or labels (--labels), may show one."


def general_evidence(scores: Sequence[pl.DataFrame], comparisons: Sequence[pl.DataFrame]) -> list[Evidence]:
    """The differences on general sets as evidence; their mean, or the one set, may forbid an encoder.

    Args:
        scores: tables `scores` of the start and of the adapted encoder.
        comparisons: tables `comparison` of the two.
    """
    if not comparisons:
        return []
    values = pl.concat(scores)
    rows = pl.concat(comparisons).filter(metric="spearman")
    guard = MEAN_OF_SETS if MEAN_OF_SETS in rows["dataset"] else rows["dataset"][0]
    made = []
    for row in rows.iter_rows(named=True):
        place = {name: row[name] for name in ("dataset", "subset", "split", "metric", "protocol")}
        after = values.filter(model=row["model"], **place)["value"]
        value = float(after[0]) if len(after) else float("nan")
        made.append(
            Evidence(
                f"{row['dataset']} {row['split']}".strip(),
                "Spearman",
                "guard" if row["dataset"] == guard else "shown",
                value - row["value"],
                value,
                row["value"],
                row["ci_low"],
                row["ci_high"],
                row["p_value"],
                row["n"],
                0,
            )
        )
    return made


def judged(rows: Sequence[Evidence], max_forgetting: float) -> Verdict:
    """The verdict on an adapted encoder.

    Args:
        rows: all evidence; the first that counts decides, it is the mean where several do.
        max_forgetting: points that a general set may lose.
    """
    lost = [row for row in rows if row.role == "guard" and forgets(row.difference, max_forgetting / 100)]
    deciding = next((row for row in rows if row.role == "counts"), None)
    if lost:
        reason = f"{_told(lost[0])}: the figure fell by more than the {max_forgetting:g} points that it may fall"
        if lost[0].ci_high >= 0:
            reason += ", though chance alone may do that too"
        return Verdict("WORSE", reason, _GENTLER)
    if not any(row.metric == "MRR" for row in rows) and deciding is None:
        return Verdict("NO DIFFERENCE", _TOO_FEW, f"The start is kept. {_ENOUGH}")
    if deciding is None:
        reason = "nothing but the view that was trained on could be asked of this text"
        return Verdict("NO DIFFERENCE", reason, "The start is kept. Give --labels, or text in documents with an order.")
    if deciding.ci_low > 0:
        return Verdict("BETTER", _told(deciding), "Use the adapted encoder on text of this kind.")
    if deciding.ci_high < 0:
        return Verdict("WORSE", _told(deciding), _GENTLER)
    return Verdict("NO DIFFERENCE", _told(deciding), f"The start is kept. {_MORE}")


def _told(row: Evidence) -> str:
    return (
        f"{row.metric} × 100 {100 * row.difference:+.2f} [{100 * row.ci_low:+.2f}, {100 * row.ci_high:+.2f}] on "
        f"{row.evidence}, p {row.p_value:.3f}"
    )


@dataclass(frozen=True)
class AdaptationContent:
    """What the page is made of.

    Attributes:
        encoder: what the person calls the start.
        verdict: word, reason and advice.
        proof: the table `proof`.
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
            "find or order": _ASKED.get(row["evidence"], row["evidence"]),
            "among": f"{row['among']:,}" if row["among"] else "",
            "n": f"{row['n']:,}",
            "figure": row["metric"],
            "before": _percent(row["before"]),
            "after": _percent(row["after"]),
            "difference": f"{100 * row['difference']:+.2f} [{100 * row['ci_low']:+.2f}, {100 * row['ci_high']:+.2f}]",
            "p": f"{row['p_value']:.3f}",
            "it": _ROLES[row["role"]],
        }
        for row in proof.iter_rows(named=True)
    ]


def exported(verdict: Verdict) -> str:
    """Which encoder is handed out."""
    return "the adapted encoder" if verdict.word == "BETTER" else "the start, unchanged"


def _percent(value: float) -> str:
    """A figure × 100; a dash for the mean of sets, of which only the difference is known."""
    return "–" if value != value else f"{100 * value:.1f}"


def adaptation_page(content: AdaptationContent) -> str:
    """The page, in Markdown."""
    verdict = content.verdict
    return (
        "\n\n".join(
            [
                f"# {plain(content.encoder)} adapted to your text",
                f"{verdict.sentence}",
                f"Exported: {exported(verdict)}.",
                "## Proof\n\nOn documents that were held out and chose nothing; 95 % intervals, documents (of long ones, runs) drawn.",
                markdown_table(proof_rows(content.proof)),
                f"## What was learnt\n\n{learnt(content)}",
                markdown_table(weighed(content.weighing)),
                f"Taken: {content.share:g} of the trained weights, the rest from the start.",
                "## Your files",
                markdown_table([*content.own.files]),
                markdown_table(
                    [{"what": str(name), "figure": f"{value}"} for name, value in content.own.counts.items()]
                ),
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
        f"That {' and '.join(content.views)} of a sentence belong together, on sentences of your text. Each share of "
        "the trained weights was asked of the half that chooses:"
    )


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
