"""Ingest stages: make the corpus of unique normalised sentences, and the NLI pairs, from raw sources."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from bsl.models.corpus.corpus import CORPUS_VERSION, CorpusStatistics, TextChunk, build_corpus
from bsl.models.corpus.nli import build_nli
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef
from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import is_nli, read_nli_pairs, read_source
from bsl.storage.sources.sources import ResolvedSource, resolve_sources, source_bytes
from bsl.tasks.corpus.config import IngestConfig
from bsl.tasks.figures import IngestFigures, SourceCounts
from bsl.tasks.rendering.blocks import Facts, Table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.ui import progress_of, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from bsl.models.runtime.progress import OnProgress
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.run_context import RunContext


logger = logging.getLogger(__name__)


def locate_sources(site: RunContext, config: IngestConfig) -> tuple[ResolvedSource, ...]:
    """Find and fingerprint the sources, so that their content, not their location, decides the key.

    A source with files of several formats becomes several sources, which share its limit.

    Raises:
        SourceError: a source was not found.
    """
    located: list[ResolvedSource] = []
    seen = Counter[tuple[str, str, int]]()
    for spec in config.sources:
        found = resolve_sources(spec, site.mirror)
        if spec.limit is not None:
            same = (found[0].name, found[0].lang, spec.limit)
            found = tuple(source.model_copy(update={"number": seen[same]}) for source in found)
            seen[same] += 1
        located += found
    return tuple(located)


@stage(ref=CorpusRef, version=CORPUS_VERSION)
def ingest(context: StageContext, sources: tuple[ResolvedSource, ...], config: IngestConfig) -> None:
    """Read the sources, normalise their sentences and remove duplicates."""
    reports = [ReadReport(source.name) for source in sources]
    # Inside the draft: no other run shares it, and it is deleted with the draft if this run is killed.
    with tempfile.TemporaryDirectory(dir=context.draft.folder) as scratch:
        statistics = build_corpus(
            _chunks(sources, reports, config.max_bad_share),
            config.corpus,
            Path(scratch),
            context.draft.write,
            _kibibytes(progress_of("ingest, KiB read"), sources, reports),
        )
    counts = [SourceCounts(name=report.name, **_tally(report), bad=report.bad) for report in reports]
    context.draft.note(IngestFigures(statistics=statistics, sources=counts))
    _show(statistics, reports)


def corpus_facts(statistics: CorpusStatistics) -> Facts:
    """Return the numbers of sentences read, dropped and in the corpus."""
    counts = statistics.model_dump(
        include={"read", "empty", "too_short", "too_long", "duplicates", "unique", "published"}
    )
    names = {"published": "in the corpus", "too_short": "too short", "too_long": "too long"}
    return Facts({names.get(name, name): f"{count:,}" for name, count in counts.items()})


def summary_of(store: Store, corpus: CorpusRef) -> str:
    """Summarise an ingest: `18 of 24 texts read; excluded: 3 repeated, 1 empty, 2 unreadable (the first: …)`."""
    figures = store.manifest(corpus).figures_as(IngestFigures)
    found, sources = figures.statistics, figures.sources
    unreadable = sum(source.unreadable for source in sources)
    first = next((str(bad) for source in sources for bad in source.bad), "")
    excluded = {
        "repeated": found.duplicates,
        "empty": found.empty,
        "too short": found.too_short,
        "too long": found.too_long,
        "beyond the limit": found.unique - found.published,
        f"unreadable (the first: {first})": unreadable,
    }
    listed = ", ".join(f"{number:,} {reason}" for reason, number in excluded.items() if number)
    head = f"{found.published:,} of {found.read + unreadable:,} texts read"
    return f"{head}; excluded: {listed}" if listed else head


def _chunks(
    sources: Sequence[ResolvedSource], reports: Sequence[ReadReport], max_bad_share: float
) -> Iterator[TextChunk]:
    for source, report in zip(sources, reports, strict=True):
        for frame in read_source(source, report, max_bad_share):
            texts = pl.concat(frame.iter_columns()).alias("text")
            yield TextChunk(texts, source.name, source.lang, source.limit, source.number)
        logger.info("%s: %s", source.name, ", ".join(f"{value:,} {name}" for name, value in _tally(report).items()))


def _kibibytes(report: OnProgress, sources: Sequence[ResolvedSource], reports: Sequence[ReadReport]) -> OnProgress:
    total = sum(map(source_bytes, sources))

    def advance(_done: int, _total: int, detail: str) -> None:
        done = sum(report.bytes_read for report in reports)
        report(done >> 10, max(total, done) >> 10, detail)

    return advance


def _tally(report: ReadReport) -> dict[str, int]:
    return {"records": report.records, "unreadable": report.rejected}


def _show(statistics: CorpusStatistics, reports: Sequence[ReadReport]) -> None:
    read = [{"source": report.name, **_tally(report)} for report in reports]
    most = max(bar.sentences for bar in statistics.histogram)
    lengths = [
        {
            "characters": f"{bar.low}–{bar.high or '…'}",
            "sentences": bar.sentences,
            "share": "█" * round(20 * bar.sentences / max(most, 1)),
        }
        for bar in statistics.histogram
    ]
    head = f"Lengths of {statistics.published:,} unique sentences, {statistics.mean_chars} characters on average"
    show(
        Table.of("Records read", read),
        corpus_facts(statistics),
        Table.of("A random sample of the corpus", list(statistics.samples)),
        Table.of("Characters of a sentence, quantiles", [statistics.quantiles]),
        Table.of(head, lengths),
    )
    if bad := [record.model_dump() for report in reports for record in report.bad]:
        show(Table.of("The first unreadable records, with their lines", bad))


def labelled_sources(sources: Sequence[ResolvedSource]) -> list[ResolvedSource]:
    """Return the sources with labelled pairs.

    Raises:
        SourceError: No source has labelled pairs.
    """
    annotated = [source for source in sources if is_nli(source)]
    if not annotated:
        raise SourceError(
            f"none of the sources {', '.join(source.name for source in sources)} has labelled pairs (expected columns "
            "premise, hypothesis, label or sentence1, sentence2, gold_label in at least one). Add such a source to "
            "ingest.sources, such as snli or multi_nli, or remove the views that need labels (augment.rewritings)."
        )
    return annotated


@stage(ref=ArtifactRef, kind="nli", version=3)
def nli(context: StageContext, sources: tuple[ResolvedSource, ...], corpus: CorpusRef, config: IngestConfig) -> None:
    """Read the labelled pairs of the sources with labels, for sentences of the corpus."""
    annotated = labelled_sources(sources)
    reports = [ReadReport(source.name) for source in annotated]
    frames = (
        frame
        for source, report in zip(annotated, reports, strict=True)
        for frame in read_nli_pairs(source, report, config.max_bad_share)
    )
    pairs, statistics = build_nli(frames, context.store.scan(corpus))
    context.draft.write(pairs)
    counts: dict[str, JsonValue] = {f"{report.name}: unlabelled": report.unlabelled for report in reports}
    labels: dict[str, JsonValue] = {
        f"label {label}": n for label, n in pairs["label"].value_counts().sort("label").iter_rows()
    }
    context.draft.note({"statistics": {**statistics}, "unlabelled": counts, "labels": labels})
    rows = [{"count of": name, "count": n} for name, n in {**counts, **statistics, **labels}.items()]
    show(Table.of("Labelled pairs read, and pairs of sentences of the corpus", rows))
