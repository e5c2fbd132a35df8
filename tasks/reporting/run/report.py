"""Everything a run made to one page for people: scores, views, curve, statistics, provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.augmentation.views import view_examples
from models.evaluation.published import published_tables
from models.partitions import bits_for, in_range
from models.report.card import model_card
from models.report.page import ReportContent, page
from models.report.verdict import Verdict, verdict_of
from storage.artifacts.refs import (
    ArtifactRef,
    CheckpointRef,
    ReportRef,
    ViewsRef,
)
from tasks.reporting.model_card import CARD, CardSubject, card_content, folded_card
from tasks.reporting.run.content import ReportSettings, RunArtifacts, Told, making_rows, run_content
from tasks.stage.cached import Work, stage
from tasks.stage.ui import show_image, show_link, show_markdown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.artifacts.store import Store
    from tasks.settings import RunSettings

PAGE = "report.md"
HTML = "report.html"
CURVE = "training-curve.png"
EXAMPLES = 5


@stage(ref=ReportRef, version=15)
def report(work: Work, made: RunArtifacts, asked: ReportSettings, told: Told) -> None:
    """Write the pages, the score table and, of what was trained, curves and model card; show them in the UI."""
    from models.report.run_page import run_page  # matplotlib

    table = pl.concat([work.store.scan(ref).collect() for ref in made.scores])
    compared = [work.store.scan(ref).collect() for ref in made.comparisons]
    comparison = pl.concat(compared) if compared else None
    verdict = _verdict(work, comparison, asked.settings, made.checkpoints)
    names = _curve_names(made.checkpoints)
    curves = {name: _curve(work, ref, asked.title) for name, ref in zip(names, made.checkpoints, strict=True)}
    content = _content(work, made, asked, table, comparison, verdict)
    for name, curve in curves.items():
        (work.draft.folder / name).write_bytes(curve)
    (work.draft.folder / PAGE).write_text(page(content), encoding="utf-8")
    html = run_page(run_content(work, made, content, asked, verdict, told))
    (work.draft.folder / HTML).write_text(html, encoding="utf-8")
    _write_cards(work, made, asked, table, verdict)
    work.draft.write(table, "scores")
    if comparison is not None:
        work.draft.write(comparison, "comparison")
    # By which a comparison of runs knows the vectors and figures of what this one is for.
    candidates = (asked.settings.result, asked.settings.systems[-1])
    work.draft.note({"result": next((name for name in candidates if name in made.vectors), "")})
    if verdict:
        work.draft.note({"verdict": verdict.word, "reason": verdict.reason, "advice": verdict.advice})
    _show(work, content, curves)


def _content(
    work: Work,
    made: RunArtifacts,
    asked: ReportSettings,
    scores: pl.DataFrame,
    comparison: pl.DataFrame | None,
    verdict: Verdict | None,
) -> ReportContent:
    trained = [ref for phase in zip(made.pairs, made.checkpoints, strict=True) for ref in phase]
    listed: tuple[ArtifactRef, ...] = (made.corpus, *([made.views] if made.views else []), *trained, *made.folded)
    datasets = {*scores["dataset"], *(scores["dataset"] + "/" + scores["split"])}
    return ReportContent(
        title=asked.title,
        scores=scores,
        comparison=comparison,
        missing=asked.missing.reasons,
        tables=asked.tables,
        published=published_tables(asked.published, datasets),
        examples=_examples(work.store, made.views) if made.views else [],
        outcomes=making_rows(work, made.views)[0] if made.views else [],
        verdict=verdict.sentence if verdict else None,
        artifacts={str(ref): ref.key for ref in (*listed, *made.figures)},
        curves=_curve_names(made.checkpoints),
    )


def _write_cards(
    work: Work, made: RunArtifacts, asked: ReportSettings, scores: pl.DataFrame, verdict: Verdict | None
) -> None:
    """Cards of what was trained, and of encoders that took a transform in."""
    encoders = {CARD: (made.checkpoints[-1], "")} if made.checkpoints else {}
    suffix = asked.settings.after_transform
    names = [name for name in made.vectors if suffix and name.endswith(suffix)]
    for number, both in enumerate(zip(made.folded, names, strict=True) if made.folded else ()):
        encoders[folded_card(number)] = both
    rows = tuple(work.store.manifest(ref).rows for ref in made.pairs)
    said = verdict.sentence if verdict else ""
    for file, (ref, system) in encoders.items():
        length = int(str(work.store.manifest(ref).figures["max_length"]))
        subject = CardSubject(ref, rows, length, system)
        card = card_content(asked.title, asked.settings, scores, subject, said)
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
