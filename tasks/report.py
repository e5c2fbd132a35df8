"""Everything a run made to one page for people: scores, views, curve, statistics, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import polars as pl

from models.augmentation.views import view_examples
from models.evaluation.published import published_tables
from models.partitions import bits_for, in_range
from models.report.card import model_card
from models.report.page import ReportContent, page
from models.report.tables import PaperTable
from models.report.verdict import Verdict, verdict_of
from storage.refs import (
    ArtifactRef,
    CheckpointRef,
    ComparisonRef,
    CorpusRef,
    EmbeddingsRef,
    PairsRef,
    ReportRef,
    ScoresRef,
    ViewsRef,
)
from storage.sources import SourceSpec
from tasks.card import CARD, card_content, folded_card
from tasks.evaluation.sets import ScoredSet
from tasks.evaluation.summary import Missing
from tasks.report_content import Made, Told, making_rows, run_content
from tasks.settings import RunSettings
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_image, show_link, show_markdown

if TYPE_CHECKING:
    from storage.store import Store

PAGE = "report.md"
HTML = "report.html"
CURVE = "training-curve.png"
EXAMPLES = 5


@stage(ref=ReportRef, version=15)
def report(
    work: Work,
    title: str,
    scores: tuple[ScoresRef, ...],
    comparisons: tuple[ComparisonRef, ...],
    missing: Missing,
    folded: tuple[CheckpointRef, ...],
    checkpoints: tuple[CheckpointRef, ...],
    pairs: tuple[PairsRef, ...],
    views: ViewsRef | None,
    corpus: CorpusRef,
    vectors: Mapping[str, EmbeddingsRef],
    sets: tuple[ScoredSet, ...],
    tables: tuple[PaperTable, ...],
    published: tuple[str, ...],
    settings: RunSettings,
    sources: tuple[SourceSpec, ...],  # noqa: ARG001 - for the key: the card names them, and a corpus's key does not
    told: Told,
) -> None:
    """Write the pages, the score table and, of what was trained, curves and model card; show them in the UI."""
    from models.report.run_page import run_page  # matplotlib

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
        examples=_examples(work.store, views) if views else [],
        outcomes=making_rows(work, views)[0] if views else [],
        verdict=verdict.sentence if verdict else None,
        artifacts={str(ref): ref.key for ref in (*made, *folded, *scores, *comparisons)},
        curves=tuple(curves),
    )
    for name, curve in curves.items():
        (work.draft.folder / name).write_bytes(curve)
    (work.draft.folder / PAGE).write_text(page(content), encoding="utf-8")
    own = Made(corpus, views, pairs, checkpoints, (*scores, *comparisons), vectors, sets)
    html = run_page(run_content(work, own, content, settings, published, verdict, told))
    (work.draft.folder / HTML).write_text(html, encoding="utf-8")
    _write_cards(work, title, settings, table, checkpoints, pairs, folded, vectors, verdict)
    work.draft.write(table, "scores")
    if comparison is not None:
        work.draft.write(comparison, "comparison")
    # By which a comparison of runs knows the vectors and figures of what this one is for.
    result = next((name for name in (settings.result, settings.systems[-1]) if name in vectors), "")
    work.draft.note({"result": result})
    if verdict:
        work.draft.note({"verdict": verdict.word, "reason": verdict.reason, "advice": verdict.advice})
    _show(work, content, curves)


def _write_cards(
    work: Work,
    title: str,
    settings: RunSettings,
    scores: pl.DataFrame,
    checkpoints: tuple[CheckpointRef, ...],
    pairs: tuple[PairsRef, ...],
    folded: tuple[CheckpointRef, ...],
    systems: Iterable[str],
    verdict: Verdict | None,
) -> None:
    """Cards of what was trained, and of encoders that took a transform in."""
    encoders = {CARD: (checkpoints[-1], "")} if checkpoints else {}
    names = [name for name in systems if settings.after_transform and name.endswith(settings.after_transform)]
    for number, both in enumerate(zip(folded, names, strict=True) if folded else ()):
        encoders[folded_card(number)] = both
    rows = tuple(work.store.manifest(ref).rows for ref in pairs)
    said = verdict.sentence if verdict else ""
    for file, (ref, system) in encoders.items():
        length = int(str(work.store.manifest(ref).figures["max_length"]))
        card = card_content(title, settings, scores, ref, rows, length, said, system)
        (work.draft.folder / file).write_text(model_card(card), encoding="utf-8")


def _verdict(
    work: Work, comparison: pl.DataFrame | None, settings: RunSettings, checkpoints: tuple[CheckpointRef, ...]
) -> Verdict | None:
    if not checkpoints:
        return None
    kept = all(work.store.manifest(ref).figures["best_step"] == 0 for ref in checkpoints)
    training = settings.phases[-1].training
    return verdict_of(comparison, settings.systems, settings.evaluation.dev, training, kept_start=kept)


def _examples(store: Store, views: ViewsRef) -> list[dict[str, str]]:
    table, bits = store.scan(views), bits_for(store.manifest(views).rows)
    return view_examples([in_range(table, number, bits) for number in range(1 << bits)], EXAMPLES).to_dicts()


def _curve_names(checkpoints: tuple[CheckpointRef, ...]) -> list[str]:
    """The last training's is `training-curve.png`; those before it are numbered."""
    return [f"training-curve-{number}.png" for number in range(1, len(checkpoints))] + [CURVE][: len(checkpoints)]


def _curve(work: Work, checkpoint: CheckpointRef, title: str) -> bytes:
    from models.report.curve import training_curve  # matplotlib, which a cached run never needs

    return training_curve(work.store.scan(checkpoint, "training_log").collect(), title)


def _show(work: Work, content: ReportContent, curves: Mapping[str, bytes]) -> None:
    folder = work.store.local
    url = (folder.absolute() / work.ref.path / HTML).as_uri() if folder else f"{work.store.url}/{work.ref.path}/{HTML}"
    show_link("page", url, "The page with charts, in the store")
    text = page(content)
    for name in curves:
        text = text.replace(f"![training curve]({name})", "(see the curve's own page)")
    show_markdown("report", text, content.title)
    for name, curve in curves.items():
        show_image(name.removesuffix(".png"), curve, f"{content.title}: training curve")
