"""What a run's page says, gathered from the store; models/report/run_page.py makes the page of it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict

from models.evaluation.published import rows_of
from models.report.run_content import ComparedSet, Making, Reproduction, RunContent
from models.report.tables import PaperTable
from models.report.verdict import telling_row
from storage.artifacts.keys import NotInKey
from storage.artifacts.manifest import installed_versions
from storage.artifacts.refs import (
    ArtifactRef,
    CheckpointRef,
    ComparisonRef,
    CorpusRef,
    EmbeddingsRef,
    PairsRef,
    ScoresRef,
    ViewsRef,
)
from storage.sources.sources import SourceSpec
from tasks.corpus.evaluation_sets import ScoredSet, read_scored_set
from tasks.embedding.vectors import SparseVectors, open_vectors
from tasks.evaluation.sts import cosines_of
from tasks.reporting.commit import commit
from tasks.reporting.evaluation import Missing
from tasks.reporting.lineage import described, lineage
from tasks.settings import RunSettings
from tasks.stage.cached import StageInputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from models.report.page import ReportContent
    from models.report.run_content import Rows
    from models.report.verdict import Verdict
    from storage.artifacts.manifest import Manifest
    from tasks.stage.cached import Work

_SEEDS: Final = ("seed", "shuffle_seed")


class ReportSettings(StageInputs):
    """The content of a run's page that no artifact has."""

    title: str
    """Title of the page."""
    missing: Missing
    """Sets that were not found, with reasons."""
    tables: tuple[PaperTable, ...]
    """Tables of the papers."""
    published: tuple[str, ...]
    """Systems with printed figures to show beside."""
    settings: RunSettings
    """Configuration of the run."""
    sources: tuple[SourceSpec, ...]
    """Sources of the corpus; the card names them, and the corpus's key does not."""


class Told(BaseModel):
    """What a page says of a run that decides nothing of its result."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    command: Annotated[str, NotInKey] = ""
    """That starts the run again; empty where no command alone does."""


class RunArtifacts(StageInputs):
    """The artifacts of a run, and the sets of its vectors."""

    corpus: CorpusRef
    """The sentences."""
    views: ViewsRef | None
    """Views of the sentences; None where nothing was trained."""
    pairs: tuple[PairsRef, ...]
    """Training pairs, one a training."""
    checkpoints: tuple[CheckpointRef, ...]
    """Encoders, one a training."""
    folded: tuple[CheckpointRef, ...]
    """Encoders that include a post-hoc transform."""
    scores: tuple[ScoresRef, ...]
    """Figures of all systems."""
    comparisons: tuple[ComparisonRef, ...]
    """Differences of systems."""
    vectors: dict[str, EmbeddingsRef]
    """System → its vectors of all sets."""
    sets: tuple[ScoredSet, ...]
    """The scored pairs."""

    @property
    def figures(self) -> tuple[ArtifactRef, ...]:
        """Scores and comparisons."""
        return (*self.scores, *self.comparisons)

    @property
    def refs(self) -> tuple[ArtifactRef, ...]:
        """All of them, in the order in which the data flows."""
        views = [self.views] if self.views else []
        return (self.corpus, *views, *self.pairs, *self.checkpoints, *self.vectors.values(), *self.figures)


def run_content(
    work: Work,
    made: RunArtifacts,
    content: ReportContent,
    asked: ReportSettings,
    verdict: Verdict | None,
    told: Told,
) -> RunContent:
    """All that the page says.

    Args:
        work: of the stage that reports.
        made: the run's artifacts.
        content: what the page in Markdown says.
        asked: configuration of the run, and systems with printed figures.
        verdict: whether training did the encoder good.
        told: what the caller knows beside.
    """
    settings, manifests = asked.settings, lineage(work.store, made.refs)
    names = _trainings(settings)
    telling = telling_row(content.comparison, settings.systems, settings.evaluation.dev) if verdict else None
    drawn = [name for name in dict.fromkeys((settings.systems[0], settings.systems[-1])) if name in made.vectors]
    bootstrap = settings.evaluation.bootstrap
    owners = {ref.key: name for name, ref in made.vectors.items()}
    return RunContent(
        title=content.title,
        summary=_summary(work, made, settings, manifests),
        verdict=verdict,
        telling=(telling["dataset"], telling["split"]) if telling else None,
        systems=settings.systems,
        drawn=drawn,
        scores=content.scores,
        comparison=content.comparison,
        tables=content.tables,
        published=[row for system in asked.published for row in rows_of(system)],
        sets=compared_sets(work, made.vectors, made.sets),
        resamples=bootstrap.resamples,
        seed=bootstrap.seed,
        missing=content.missing,
        findings=dict(_findings(work, made.checkpoints, names)),
        artifacts=[described(manifest, work.draft.provenance.run, owners) for manifest in manifests],
        making=_making(work, made, content, names),
        logs={
            name: work.store.scan(ref, "training_log").collect()
            for name, ref in zip(names, made.checkpoints, strict=True)
        },
        training=_training(work, made.checkpoints),
        reproduction=_reproduction(told, settings),
    )


def compared_sets(work: Work, vectors: Mapping[str, EmbeddingsRef], sets: tuple[ScoredSet, ...]) -> list[ComparedSet]:
    """Every set under every system whose vectors know a word of it."""
    opened = {name: open_vectors(work.store, ref) for name, ref in vectors.items()}
    compared = []
    for scored in sets:
        cosines = {name: cosines_of(own, scored) for name, own in opened.items()}
        known = {
            name: values
            for name, values in cosines.items()
            if values.any() or not isinstance(opened[name], SparseVectors)
        }
        pairs = read_scored_set(scored).select("sentence1", "sentence2", "score")
        compared.append(ComparedSet(scored.name, scored.dataset, scored.split, pairs, known))
    return compared


def making_rows(work: Work, views: ViewsRef) -> tuple[Rows, Rows]:
    """What became of each sentence on its way to a view, and what was translated for it."""
    figures = work.store.manifest(views).figures
    outcomes, hops = _rows(figures.get("outcomes")), _rows(figures.get("hops"))
    totals: dict[str, int] = {}
    for row in outcomes:
        totals[row["method"]] = totals.get(row["method"], 0) + int(row["n"])
    shares = [{**row, "share": f"{100 * int(row['n']) / totals[row['method']]:.2f} %"} for row in outcomes]
    return shares, hops


def _making(work: Work, made: RunArtifacts, content: ReportContent, names: Sequence[str]) -> Making:
    statistics = work.store.manifest(made.corpus).figures.get("statistics")
    counted = statistics if isinstance(statistics, Mapping) else {}
    outcomes, hops = making_rows(work, made.views) if made.views else ([], [])
    pairings = {
        name: rows
        for name, ref in zip(names, made.pairs, strict=True)
        if (rows := _rows(work.store.manifest(ref).figures.get("pairings")))
    }
    sentences = {name: value for name, value in counted.items() if isinstance(value, int)}
    return Making(sentences, content.examples, outcomes, hops, pairings)


def _rows(value: object) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _trainings(settings: RunSettings) -> list[str]:
    """What to call each training; numbered where there are several."""
    labels = [phase.training.objective.label for phase in settings.phases]
    return [f"{number}. {label}" for number, label in enumerate(labels, start=1)] if len(labels) > 1 else labels


def _summary(work: Work, made: RunArtifacts, settings: RunSettings, manifests: Sequence[Manifest]) -> dict[str, str]:
    sources = [source.dataset or "files of your own" for source in settings.ingest.sources]
    run = work.draft.provenance.run
    new = [manifest for manifest in manifests if run and manifest.provenance.run == run]
    seconds, spent = (sum(manifest.duration_s for manifest in some) for some in (manifests, new))
    return {
        "corpus": ", ".join(sources),
        "sentences": f"{work.store.manifest(made.corpus).rows:,}",
        **({"views": f"{work.store.manifest(made.views).rows:,}"} if made.views else {}),
        **({"pairs": ", ".join(f"{work.store.manifest(ref).rows:,}" for ref in made.pairs)} if made.pairs else {}),
        "encoder at the start": f"{settings.encoder.model}, {settings.encoder.pooling}",
        **({"objective": ", then ".join(_trainings(settings))} if settings.phases else {}),
        "artifacts": f"{len(new)} made, {len(manifests) - len(new)} cached",
        "time": f"{_duration(spent)}{'' if spent == seconds else f'; {_duration(seconds)} with what was cached'}",
    }


def _training(work: Work, checkpoints: Sequence[CheckpointRef]) -> dict[str, str]:
    if not checkpoints:
        return {}
    figures = work.store.manifest(checkpoints[-1]).figures
    measured = figures.get("measured")
    dev = {
        name: f"{100 * value:.2f}"
        for name, key in (("dev at the start", "start_dev_spearman"), ("best dev", "best_dev_spearman"))
        if isinstance(value := figures.get(key), float)
    }
    speed = {
        name.replace("_per_s", " per second"): f"{value:,.0f}"
        for name, value in (measured.items() if isinstance(measured, Mapping) else ())
        if name.endswith("_per_s") and isinstance(value, int | float)
    }
    return {"steps": str(figures["steps"]), "kept step": str(figures["best_step"]), **dev, **speed}


def _findings(work: Work, checkpoints: Sequence[CheckpointRef], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name, ref in zip(names, checkpoints, strict=True):
        if finding := work.store.manifest(ref).figures.get("finding"):
            yield f"training {name}", str(finding)


def _reproduction(told: Told, settings: RunSettings) -> Reproduction:
    dumped = settings.model_dump(mode="json")
    return Reproduction(
        command=told.command,
        environment=environment(),
        seeds=dict(_seeds(dumped, "")),
        config=settings.model_dump_json(indent=1),
    )


def environment() -> dict[str, str]:
    """What this runs on: commit, system, versions."""
    return {"commit": commit(), "system": platform.platform(terse=True), **installed_versions()}


def _seeds(value: object, place: str) -> Iterator[tuple[str, object]]:
    """Every field that is a seed, by its path."""
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        path = f"{place}.{name}".lstrip(".")
        if name in _SEEDS:
            yield path, part
        else:
            yield from _seeds(part, path)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
