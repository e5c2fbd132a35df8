"""Passage stages: read the user's files as ordered sentences, hold documents out, choose sentences for training."""

from __future__ import annotations

import polars as pl

from bsl.models.corpus.labels import Use
from bsl.models.corpus.passages import HoldOutConfig, LeftOut
from bsl.models.runtime.partitions import scattered
from bsl.storage.artifacts.refs import CorpusRef, PassagesRef
from bsl.storage.sources.labels import LabelSource
from bsl.storage.sources.own_text import TextSource
from bsl.tasks.corpus.labels import TRAIN, counts_of, labelled_rows, without_test_labels
from bsl.tasks.corpus.own_sentences import parts_of
from bsl.tasks.figures import LabelCounts, OwnCorpusFigures, PassagesFigures
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.ui import progress_of, show


def columns_table(sources: tuple[TextSource, ...]) -> Table:
    """Return the files and the columns read from them."""
    return Table.of("Columns", [source.summary for source in sources])


@stage(ref=PassagesRef, version=12)
def read_passages(context: StageContext, sources: tuple[TextSource, ...], config: HoldOutConfig) -> None:
    """Read files, split their records into sentences and hold documents out.

    Raises:
        EmptyCorpusError: the text columns are empty, or a part has no sentences.
    """
    show(columns_table(sources))
    left_out = LeftOut()
    table, parts = parts_of(sources, config, left_out, progress_of("reading, files"))
    context.draft.write(parts)
    sizes = parts.group_by("part", maintain_order=True).agg(pl.len(), pl.col("document").n_unique())
    context.draft.note(
        {
            "sentences": table.height,
            "documents": table["document"].n_unique(),
            "too short": left_out.short,
            "too long": left_out.long,
            "of an earlier file": left_out.copied,
            "titles": parts.filter(pl.col("title").is_not_null())["title"].n_unique(),
            "neighbours": int((parts["position"].diff() == 1).sum()),
            **{f"{part} sentences": size for part, size, _ in sizes.iter_rows()},
            **{f"{part} documents": count for part, _, count in sizes.iter_rows()},
        }
    )
    if left_out.unreadable:  # other manifests stay as they were
        context.draft.note({"unreadable": left_out.unreadable, "first unreadable": left_out.first_unreadable})
    show(Table.of("Some of your sentences", parts.sample(min(20, parts.height), seed=0).to_dicts()))


def lengths_line(figures: PassagesFigures, config: HoldOutConfig) -> str:
    """Return a sentence on the records and sentences that were dropped; empty if there are none."""
    found = (figures.too_short, figures.too_long, figures.copied, figures.unreadable, figures.first_unreadable)
    lost = LeftOut(*found).summary(config)
    return f"text: {figures.sentences:,} sentences; {lost}" if lost else ""


@stage(ref=CorpusRef, version=5)
def training_corpus(
    context: StageContext, passages: PassagesRef, labels: LabelSource | None, use: Use, seed: int
) -> None:
    """Make the training corpus: unique sentences of the part `train`, without those of test labels.

    Raises:
        EvaluationError: there are too few labels for an evaluation; raised before training.
        EmptyCorpusError: all training candidates occur in test labels.
    """
    table = context.store.scan(passages).collect()
    unique = table.filter(part=TRAIN).unique("sentence_id", keep="first", maintain_order=True)
    sentences, counts = unique.select("sentence_id", "text", "source", "lang").sort("sentence_id"), LabelCounts()
    if labels is not None:
        rows = labelled_rows(context.store, passages, labels, use=use, seed=seed)
        sentences, counts = without_test_labels(sentences, rows, labels), counts_of(rows, labels)
    context.draft.write(sentences)
    held_out = table.filter(pl.col("part") != TRAIN).height
    context.draft.note(OwnCorpusFigures(sentences=sentences.height, held_out=held_out))
    context.draft.note(counts)


@stage(ref=CorpusRef, version=3)
def corpus_sample(context: StageContext, corpus: CorpusRef, most: int, seed: int) -> None:
    """Sample at most `most` sentences of the training corpus, to translate them."""
    sentences = context.store.scan(corpus).collect().sort(scattered(pl.col("sentence_id"), seed))
    context.draft.write(sentences.head(most).sort("sentence_id"))
