"""NLI: the annotated pairs of the corpus's sources, as a table of sentence ids beside the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.corpus.nli import build_nli
from storage.artifacts.refs import CorpusRef, NliRef
from storage.errors import SourceError
from storage.readers.read_report import ReadReport
from storage.sources.read import is_nli, read_nli_pairs
from storage.sources.sources import ResolvedSource
from tasks.corpus.config import IngestConfig
from tasks.stage.cached import Work, stage
from tasks.stage.ui import show_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl
    from pydantic import JsonValue


@stage(ref=NliRef, version=2)
def nli(work: Work, sources: tuple[ResolvedSource, ...], corpus: CorpusRef, config: IngestConfig) -> None:
    """Read the labelled pairs of those sources that have labels; the sentences are the corpus's own."""
    annotated = [source for source in sources if is_nli(source)]
    if not annotated:
        raise SourceError(
            f"none of the sources {', '.join(source.name for source in sources)} has labelled pairs; expected columns "
            "premise, hypothesis, label (or sentence1, sentence2, gold_label) in at least one, as snli and multi_nli "
            "have; add such a source to ingest.sources, or leave out the views that need labels (augment.rewritings)"
        )
    reports = [ReadReport(source.name) for source in annotated]
    pairs, statistics = build_nli(_frames(annotated, reports, config.max_bad_share), work.store.scan(corpus))
    work.draft.write(pairs)
    counts: dict[str, JsonValue] = {f"{report.name}: unlabelled": report.unlabelled for report in reports}
    labels: dict[str, JsonValue] = {
        f"label {label}": n for label, n in pairs["label"].value_counts().sort("label").iter_rows()
    }
    work.draft.note({"statistics": statistics.model_dump(), "unlabelled": counts, "labels": labels})
    rows = [{"what": what, "count": n} for what, n in (counts | statistics.model_dump() | labels).items()]
    show_table("nli-statistics", rows, "From labelled pairs read to pairs of the corpus's sentences")


def _frames(
    sources: Sequence[ResolvedSource], reports: Sequence[ReadReport], max_bad_share: float
) -> Iterator[pl.DataFrame]:
    for source, report in zip(sources, reports, strict=True):
        yield from read_nli_pairs(source, report, max_bad_share)
