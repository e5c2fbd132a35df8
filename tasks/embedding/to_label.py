"""Choose texts that a user without labels should label, and write them as a file of labels without values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.normalize import has_text, sentence_ids
from bsl.models.encoder.config import EncoderConfig
from bsl.models.runtime.partitions import scattered
from bsl.storage.artifacts.refs import CheckpointRef, CorpusRef
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.storage.sources.own_text import TextSource, records
from bsl.tasks.embedding.encoders import load_encoder
from bsl.tasks.figures import ToLabelFigures
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.ui import progress_of, show

if TYPE_CHECKING:
    from pathlib import Path

    from bsl.storage.artifacts.store import Store

TO_LABEL: Final = "to-label.csv"
"""File name beside the report."""
_CANDIDATES: Final = 4  # texts to choose from, per text chosen; more take minutes to embed on a CPU
_SHORTEST, _LONGEST = 20, 2_000  # characters; other texts are candidates only if most have other lengths


@stage(ref=CorpusRef, version=3, uses_torch=True)
def choose_to_label(
    context: StageContext,
    sources: tuple[TextSource, ...],
    encoder: CheckpointRef | ResolvedModel,
    reading: EncoderConfig,
    count: int,
    seed: int,
) -> None:
    """Choose `count` texts nearest to the centres of clusters of the original encoder's vectors.

    The seed draws the candidates and the first centres.
    """
    from bsl.models.corpus.selection import spread_rows

    # Scattered twice: `parts_of` makes rows test labels if their id, scattered once, is low. So candidates that are the
    # lowest of the same numbers would all be test labels.
    drawn = scattered(scattered(pl.col("sentence_id"), seed), seed)
    texts = _texts(sources).sort(drawn).head(_CANDIDATES * count)
    network = load_encoder(context.store, encoder, reading)
    progress = progress_of("embedding, texts")
    vectors = network.encode(texts["text"].to_list(), device=device_of(context.site), on_progress=progress)
    chosen = texts[spread_rows(vectors, count, seed)]
    context.draft.write(chosen)
    context.draft.note(ToLabelFigures(seed=seed, candidates=texts.height, rows=chosen.height))
    show(Table.of(f"The first of {chosen.height} texts to label", chosen.head(20).select("text").to_dicts()))


def write_to_label(store: Store, chosen: CorpusRef, path: Path) -> None:
    """Write the texts with an empty column `label`: as UTF-8 with a mark, which spreadsheets need."""
    texts = store.scan(chosen).select("text").collect()
    texts.with_columns(label=pl.lit(None, pl.String)).write_csv(path, include_bom=True)


def to_label_summary(store: Store, chosen: CorpusRef) -> str:
    """Return a sentence on the file, from the figures of `choose_to_label`."""
    figures = store.manifest(chosen).figures_as(ToLabelFigures)
    return (
        f"{TO_LABEL}, beside this page, has {figures.rows:,} of your texts, each nearest to the centre of a cluster "
        f"(k-means of the original encoder's vectors of {figures.candidates:,} texts, seed {figures.seed}). Fill "
        "in the column label of some or all of them, then give the file with --labels."
    )


def _texts(sources: tuple[TextSource, ...]) -> pl.DataFrame:
    """Return the different texts of files as rows of a corpus: those of usual length, or all if most are not."""
    found = [
        table.select(pl.col("text").str.strip_chars(), source=pl.lit(source.name), lang=pl.lit(source.lang))
        for source in sources
        for table in records(source, ReadReport(source.name))
    ]
    texts = pl.concat(found).filter(has_text(pl.col("text")))
    different = texts.unique("text", keep="first", maintain_order=True)
    usual = different.filter(pl.col("text").str.len_chars().is_between(_SHORTEST, _LONGEST))
    every = usual if 2 * usual.height >= different.height else different
    return every.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text", "source", "lang")
