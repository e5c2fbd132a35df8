"""Everything a run made to one page for people: scores, views, curve, statistics, provenance."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from models.augmentation.views import view_examples
from models.evaluation.published import published_tables
from models.report.card import model_card
from models.report.page import INTERVALS, ReportContent, page, score_rows
from models.report.tables import PaperTable
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


@stage(ref=ReportRef, version=6)
def report(
    work: Work,
    title: str,
    scores: tuple[ScoresRef, ...],
    comparisons: tuple[ComparisonRef, ...],
    missing: Missing,
    checkpoint: CheckpointRef,
    pairs: PairsRef,
    views: ViewsRef,
    corpus: CorpusRef,
    tables: tuple[PaperTable, ...],
    published: tuple[str, ...],
    settings: RunSettings,
    sources: tuple[SourceSpec, ...],  # noqa: ARG001 - for the key: the card names them, and a corpus's key does not
) -> None:
    """Write the page, its picture, the model card and the score table, and show them in the UI."""
    table = pl.concat([work.store.scan(ref).collect() for ref in scores])
    log = work.store.scan(checkpoint, "training_log").collect()
    compared = [work.store.scan(ref).collect() for ref in comparisons]
    used: tuple[ArtifactRef, ...] = (corpus, views, pairs, checkpoint, *scores, *comparisons)
    content = ReportContent(
        title=title,
        scores=table,
        comparison=pl.concat(compared) if compared else None,
        missing=missing.reasons,
        tables=tables,
        published=published_tables(published, {*table["dataset"], *(table["dataset"] + "/" + table["split"])}),
        examples=view_examples(work.store.scan(views), EXAMPLES).to_dicts(),
        statistics={ref.kind: _flat(work.store.manifest(ref).figures) for ref in (corpus, views, pairs, checkpoint)},
        config=settings.model_dump_json(indent=1),
        artifacts={str(ref): ref.key for ref in used},
        curve=CURVE,
    )
    from models.report.curve import training_curve  # matplotlib, which a cached run never needs

    curve = training_curve(log, title)
    (work.draft.folder / CURVE).write_bytes(curve)
    (work.draft.folder / PAGE).write_text(page(content), encoding="utf-8")
    length = int(str(work.store.manifest(checkpoint).figures["max_length"]))
    card = card_content(title, settings, table, checkpoint, work.store.manifest(pairs).rows, length)
    (work.draft.folder / CARD).write_text(model_card(card), encoding="utf-8")
    work.draft.write(table, "scores")
    if content.comparison is not None:
        work.draft.write(content.comparison, "comparison")
    _show(work, content, curve)


def _flat(figures: Mapping[str, object]) -> dict[str, object]:
    """The single figures of a manifest, those one level down too; not what was `measured`, which differs by machine."""
    groups = [group for name, group in figures.items() if isinstance(group, Mapping) and name != "measured"]
    inner = {name: value for group in groups for name, value in group.items()}
    return {name: value for name, value in {**figures, **inner}.items() if not isinstance(value, list | Mapping)}


def _show(work: Work, content: ReportContent, curve: bytes) -> None:
    key = work.ref.key[:12]
    show_markdown("report", page(content).replace(f"![training curve]({CURVE})", "(see training-curve)"), content.title)
    show_table("report-scores", score_rows(content.scores), f"{content.title}: {INTERVALS.lower()}")
    show_image("report-curve", curve, f"{content.title}: training curve of report {key}")
    folder = work.store.local
    url = (folder.absolute() / work.ref.path / PAGE).as_uri() if folder else f"{work.store.url}/{work.ref.path}/{PAGE}"
    show_link("report-file", url, PAGE, f"The page of report {key} in the store")
