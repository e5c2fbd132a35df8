"""Tables and sentences of a result on the terminal: of a run, an adaptation, an evaluation, a sweep, a reproduction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import polars as pl

from bsl.storage.artifacts.refs import ProofRef
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.figures import AdaptationFigures, EvaluationFigures, ReportFigures, ResultFigures, SweepFigures
from bsl.tasks.rendering.evidence import MRR, answer_rows, proof_rows
from bsl.tasks.rendering.numbers import MISSING
from bsl.tasks.rendering.paper_tables import paper_tables
from bsl.tasks.rendering.score_tables import INTERVALS, difference_rows, holm_named, score_rows
from bsl.tasks.reporting.reproduction import figure_rows
from bsl.tasks.reporting.sweep.page import comparisons, fault_lines, set_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.store import Store

Titled: TypeAlias = tuple[str, list[dict[str, str]]]
_ANSWERS: Final = "What the adapted encoder is better for (× 100)"


def result_tables(store: Store, manifest: Manifest) -> Iterator[Titled]:
    """Yield title and rows of each table of a result, or of another artifact that has scores."""
    if manifest.kind == "sweep":
        table = store.scan(manifest.ref).collect()
        yield "Figures × 100, mean over seeds ± standard deviation", set_rows(table)
        for heading, rows in comparisons(table, manifest.figures_as(SweepFigures)):
            yield f"{heading}; 95 % intervals over seeds and questions", rows
        if "scores" in manifest.tables:  # of evaluations that are compared
            yield from _of_scores(store, manifest)
    elif manifest.kind == "reproduction":
        rows = figure_rows(store.scan(manifest.ref).collect())
        yield f"Published and measured, × 100; margin {rows[0]['margin']}", _without_empty(rows, "margin")
    elif _is_adaptation(manifest):
        yield from _of_adaptation(store, manifest)
    elif "scores" in manifest.tables:
        yield from _of_scores(store, manifest)


def result_lines(manifest: Manifest) -> Iterator[str]:
    """Yield the findings of a result, such as its verdict, and what its figures lack; none for other artifacts."""
    yield from manifest.figures_as(ResultFigures).findings
    if manifest.kind == "sweep":
        sweep = manifest.figures_as(SweepFigures)
        yield from (*fault_lines(sweep.faults), *sweep.notes)
    elif manifest.kind == "evaluation":
        missing = manifest.figures_as(EvaluationFigures).missing
        for reason in dict.fromkeys(missing.values()):
            yield f"missing: {', '.join(name for name in missing if missing[name] == reason)}: {reason}"
    elif _is_adaptation(manifest):
        adaptation = manifest.figures_as(AdaptationFigures)
        use = f"{adaptation.classifier} Use it: bsl classify {manifest.ref} new.csv out.csv"
        yield from filter(None, (adaptation.split, adaptation.classifier and use))
    elif manifest.kind == "report":
        run = manifest.figures_as(ReportFigures)
        if run.verdict:
            yield f"{run.verdict}: {run.reason}. {run.advice}"


def _is_adaptation(manifest: Manifest) -> bool:
    return manifest.kind == "report" and "proof" in manifest.provenance.inputs


def _of_scores(store: Store, manifest: Manifest) -> Iterator[Titled]:
    """Yield the papers' tables of an evaluation, all scores, and the differences if systems are compared."""
    scores = store.scan(manifest.ref, "scores").collect()
    if manifest.kind == "evaluation":
        yield from ((title, rows) for title, rows, _ in paper_tables(scores, tables()))
    yield INTERVALS, score_rows(scores)
    if "comparison" in manifest.tables:
        draws = manifest.figures_as(ResultFigures).draws
        comparison = store.scan(manifest.ref, "comparison").collect()
        yield holm_named("Paired differences × 100, with p", comparison), difference_rows(comparison, draws)


def _of_adaptation(store: Store, manifest: Manifest) -> Iterator[Titled]:
    """Yield the numbers of rows, the answer for each use, and the other figures."""
    figures = manifest.figures_as(AdaptationFigures)
    proof = store.scan(ProofRef(key=manifest.provenance.inputs["proof"].key)).collect()
    yield "Rows", [{name: f"{count:,}" for name, count in figures.rows.items()}]
    if answers := answer_rows(proof, figures.draws):
        yield _ANSWERS, answers
    others = proof_rows(proof.filter(pl.col("use").is_null()), figures.draws)
    yield f"Other figures on held-out text (× 100), and on general sets. {MRR}", others


def _without_empty(rows: list[dict[str, str]], *names: str) -> list[dict[str, str]]:
    """Return rows without the named columns and those without a value in any row, for a narrow table."""
    empty = {name for name in rows[0] if all(row[name] == MISSING for row in rows)}
    return [{name: cell for name, cell in row.items() if name not in {*names, *empty}} for row in rows]
