"""Make training pairs from views or annotated sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.labels import TEACH, Use, class_pairs, shares
from bsl.models.errors import TrainingError
from bsl.models.runtime.partitions import bits_for, in_range
from bsl.models.views.annotated_pairs import labelled_pairs, own_rehearsal, scored_pairs, with_rehearsal
from bsl.models.views.pairs import PairConfig, build_pairs, count_pairs, require_pairs
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef, PairsRef, PassagesRef, ViewsRef
from bsl.storage.sources.labels import LabelSource
from bsl.tasks.corpus.evaluation_sets import ScoredSet, read_scored_set, resolve_scored_set
from bsl.tasks.corpus.labels import labelled_rows
from bsl.tasks.figures import LabelPairsFigures, PairsFigures
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.ui import show

if TYPE_CHECKING:
    from bsl.models.runtime.partitions import Ranges
    from bsl.tasks.stage.run_context import RunContext

SAMPLE_ROWS = 20
OF_LABELS: Final = "labels"
"""Source of the training pairs that are made of the user's labels."""


def pairs_of(
    site: RunContext, corpus: CorpusRef, views: ViewsRef, nli: ArtifactRef | None, config: PairConfig
) -> PairsRef:
    """Make the training pairs of a configuration, or reuse cached ones.

    Raises:
        SourceError: The scored set named by `config.scored` is not available.
    """
    if config.scored is not None:
        return pair_scored(site, resolve_scored_set(site, config.scored), config.shuffle_seed)
    if nli is not None and config.labelled:
        return pair_labelled(site, corpus, nli, config)
    return pair(site, views, config)


@stage(ref=PairsRef, version=2)
def pair(context: StageContext, views: ViewsRef, config: PairConfig) -> None:
    """Pair two views of each sentence, in training order."""
    table, bits = context.store.scan(views), bits_for(context.store.manifest(views).rows)
    _pair(context, lambda number: in_range(table, number, bits), config, bits)


@stage(ref=PairsRef, version=1)
def pair_own(context: StageContext, views: ViewsRef, trips: ViewsRef | None, config: PairConfig) -> None:
    """Pair views and round trips of the user's sentences; skip round trips of sentences without views."""
    sentences, bits = context.store.scan(views), bits_for(context.store.manifest(views).rows)
    more = None if trips is None else context.store.scan(trips)

    def of_range(number: int) -> pl.LazyFrame:
        here = in_range(sentences, number, bits)
        if more is None:
            return here
        return pl.concat(
            [here, in_range(more, number, bits).join(here.select("sentence_id"), on="sentence_id", how="semi")]
        )

    _pair(context, of_range, config, bits)


@stage(ref=PairsRef, version=9)
def pair_own_labels(
    context: StageContext,
    passages: PassagesRef,
    labels: LabelSource,
    use: Use,
    seed: int,
    general: ScoredSet | None,
    own: CorpusRef | None,
) -> None:
    """Make scored training pairs of labels: the given pairs, or texts paired within and across classes.

    Pairs without a score are added, whose vectors training preserves: sentences of the general set and of the user's
    training text. None adds none.

    Raises:
        TrainingError: too few classes, or all scores equal.
        EvaluationError: too few labels for an evaluation.
    """
    rows = labelled_rows(context.store, passages, labels, use=use, seed=seed).filter(part=TEACH)
    if labels.kind == "classes":
        classes = rows["label"].rank("dense").cast(pl.Int64).to_numpy() - 1
        pairs = class_pairs(rows["text_1"].to_list(), classes)
    else:
        pairs = rows.select(sentence1="text_1", sentence2="text_2", score=shares(rows["label"].cast(pl.Float64)))
    training = scored_pairs(pairs, 1.0, OF_LABELS, 0)
    rehearsed = {} if general is None else {general.name: read_scored_set(general)}
    if own is not None:
        rehearsed["own text"] = own_rehearsal(context.store.scan(own).collect()["text"], seed)
    training = with_rehearsal(training, rehearsed, seed)
    context.draft.write(training)
    context.draft.note(LabelPairsFigures(labels=rows.height, pairs=training.height))
    _show(context)


@stage(ref=PairsRef, version=1)
def pair_labelled(context: StageContext, corpus: CorpusRef, nli: ArtifactRef, config: PairConfig) -> None:
    """Pair premises with their hypotheses and annotated labels.

    Raises:
        TrainingError: No labelled pair has both sentences in the corpus.
    """
    sentences, annotated = context.store.scan(corpus), context.store.scan(nli)
    bits = bits_for(max(context.store.manifest(ref).rows for ref in (corpus, nli)))
    with context.store.workspace() as scratch:
        rows = context.draft.write_all(labelled_pairs(sentences, annotated, config.shuffle_seed, bits, scratch))
    if not rows:
        raise TrainingError(
            f"{nli} contains no pair with both sentences in {corpus}. Raise ingest.corpus.limit, or give sources with "
            "more labelled pairs."
        )
    labels = context.draft.scan().group_by("label").len().sort("label").collect(engine="streaming")
    context.draft.note({"labels": {str(label): n for label, n in labels.iter_rows()}})
    _show(context)


@stage(ref=PairsRef, version=2)
def pair_scored(context: StageContext, scored: ScoredSet, shuffle_seed: int | None) -> None:
    """Pair the sentences of a scored set, with annotated scores scaled to [0, 1]."""
    pairs = scored_pairs(read_scored_set(scored), scored.highest, scored.name, shuffle_seed)
    context.draft.write(pairs)
    context.draft.note(
        {"scores": {"pairs": pairs.height, "mean": round(float(pairs["score"].sum()) / pairs.height, 4)}}
    )
    _show(context)


def _pair(context: StageContext, views: Ranges, config: PairConfig, bits: int) -> None:
    counts = count_pairs(views, config, bits)
    require_pairs(counts)
    with context.store.workspace() as scratch:
        context.draft.write_all(build_pairs(views, config, bits, scratch))
    figures = PairsFigures(pairings=counts.to_dicts())
    context.draft.note(figures)
    show(*pairing_tables(figures))
    _show(context)


def pairing_tables(figures: PairsFigures, training: str = "") -> list[Table]:
    """Return the pairs of each pairing, and the sentences that lack a view; no table for pairs of labels."""
    title = f"Pairs of {training}" if training else "Pairs by pairing"
    return [Table.of(title, figures.pairings)] if figures.pairings else []


def _show(context: StageContext) -> None:
    first = context.draft.scan().head(SAMPLE_ROWS).drop("pair_id", "sentence_id", "group").collect()
    show(Table.of("The first pairs in training order", first.to_dicts()))
