"""Everything a run made to one page for people: scores, views, curve, statistics, provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from models.augmentation.views import view_examples
from models.evaluation.published import published_tables
from models.report.card import model_card
from models.report.page import INTERVALS, ReportContent, page, score_rows
from models.report.tables import PaperTable
from models.report.verdict import Verdict, verdict_of
from storage.refs import ArtifactRef, CheckpointRef, ComparisonRef, CorpusRef, PairsRef, ReportRef, ScoresRef, ViewsRef
from storage.sources import SourceSpec
from tasks.card import CARD, card_content
from tasks.evaluation.summary import Missing
from tasks.settings import RunSettings
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_image, show_link, show_markdown, show_table

PAGE = "report.md"
CURVE = "training-curve.png"
EXAMPLES = 5


@stage(ref=ReportRef, version=7)
def report(
    work: Work,
    title: str,
    scores: tuple[ScoresRef, ...],
    comparisons: tuple[ComparisonRef, ...],
    missing: Missing,
    checkpoints: tuple[CheckpointRef, ...],
    pairs: tuple[PairsRef, ...],
    views: ViewsRef | None,
    corpus: CorpusRef,
    tables: tuple[PaperTable, ...],
    published: tuple[str, ...],
    settings: RunSettings,
    sources: tuple[SourceSpec, ...],  # noqa: ARG001 - for the key: the card names them, and a corpus's key does not
) -> None:
    """Write the page, the score table and, of what was trained, curves and model card; show them in the UI."""
    table = pl.concat([work.store.scan(ref).collect() for ref in scores])
    compared = [work.store.scan(ref).collect() for ref in comparisons]
    trained = [ref for phase in zip(pairs, checkpoints, strict=True) for ref in phase]
    made: tuple[ArtifactRef, ...] = (corpus, *([views] if views else []), *trained)
    comparison = pl.concat(compared) if compared else None
    verdict = _verdict(work, comparison, settings, checkpoints)
    curves = {name: _curve(work, ref, title) for name, ref in zip(_curve_names(checkpoints), checkpoints, strict=True)}
    content = ReportContent(
        title=title,
        scores=table,
        comparison=comparison,
        missing=missing.reasons,
        tables=tables,
        published=published_tables(published, {*table["dataset"], *(table["dataset"] + "/" + table["split"])}),
        examples=view_examples(work.store.scan(views), EXAMPLES).to_dicts() if views else [],
        statistics=dict(_statistics(work, made)),
        verdict=verdict.sentence if verdict else None,
        config=settings.model_dump_json(indent=1),
        artifacts={str(ref): ref.key for ref in (*made, *scores, *comparisons)},
        curves=tuple(curves),
    )
    for name, curve in curves.items():
        (work.draft.folder / name).write_bytes(curve)
    (work.draft.folder / PAGE).write_text(page(content), encoding="utf-8")
    if checkpoints:
        length = int(str(work.store.manifest(checkpoints[-1]).figures["max_length"]))
        rows = tuple(work.store.manifest(ref).rows for ref in pairs)
        card = card_content(title, settings, table, checkpoints[-1], rows, length, verdict.sentence if verdict else "")
        (work.draft.folder / CARD).write_text(model_card(card), encoding="utf-8")
    work.draft.write(table, "scores")
    if comparison is not None:
        work.draft.write(comparison, "comparison")
    if verdict:
        work.draft.note({"verdict": verdict.word, "reason": verdict.reason, "advice": verdict.advice})
    _show(work, content, curves)


def _verdict(
    work: Work, comparison: pl.DataFrame | None, settings: RunSettings, checkpoints: tuple[CheckpointRef, ...]
) -> Verdict | None:
    if not checkpoints:
        return None
    kept = all(work.store.manifest(ref).figures["best_step"] == 0 for ref in checkpoints)
    training = settings.phases[-1].training
    return verdict_of(comparison, settings.systems, settings.evaluation.dev, training, kept_start=kept)


def _curve_names(checkpoints: tuple[CheckpointRef, ...]) -> list[str]:
    """The last training's is `training-curve.png`; those before it are numbered."""
    return [f"training-curve-{number}.png" for number in range(1, len(checkpoints))] + [CURVE][: len(checkpoints)]


def _curve(work: Work, checkpoint: CheckpointRef, title: str) -> bytes:
    from models.report.curve import training_curve  # matplotlib, which a cached run never needs

    return training_curve(work.store.scan(checkpoint, "training_log").collect(), title)


def _statistics(work: Work, made: Sequence[ArtifactRef]) -> Iterator[tuple[str, dict[str, object]]]:
    """What the stages measured, by kind; of several trainings in a row, numbered."""
    kinds = [ref.kind for ref in made]
    for place, ref in enumerate(made):
        number = f" {kinds[: place + 1].count(ref.kind)}" if kinds.count(ref.kind) > 1 else ""
        yield ref.kind + number, _flat(work.store.manifest(ref).figures)


def _flat(figures: Mapping[str, object]) -> dict[str, object]:
    """The single figures of a manifest, those one level down too; not what was `measured`, which differs by machine."""
    groups = [group for name, group in figures.items() if isinstance(group, Mapping) and name != "measured"]
    inner = {name: value for group in groups for name, value in group.items()}
    return {name: value for name, value in {**figures, **inner}.items() if not isinstance(value, list | Mapping)}


def _show(work: Work, content: ReportContent, curves: Mapping[str, bytes]) -> None:
    key = work.ref.key[:12]
    text = page(content)
    for name in curves:
        text = text.replace(f"![training curve]({name})", "(see training-curve)")
    show_markdown("report", text, content.title)
    show_table("report-scores", score_rows(content.scores), f"{content.title}: {INTERVALS.lower()}")
    if CURVE in curves:
        show_image("report-curve", curves[CURVE], f"{content.title}: training curve of report {key}")
    folder = work.store.local
    url = (folder.absolute() / work.ref.path / PAGE).as_uri() if folder else f"{work.store.url}/{work.ref.path}/{PAGE}"
    show_link("report-file", url, PAGE, f"The page of report {key} in the store")
