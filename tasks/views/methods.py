"""Views without a translator: one stage for each method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.normalize import normalize
from bsl.models.runtime.partitions import bits_for, scattered
from bsl.models.views.annotated_pairs import entailed_views
from bsl.models.views.config import CropView, DeletedView, EntailView, GivenView, MaskedView, SynonymView
from bsl.models.views.synonyms import FILES
from bsl.models.views.views import given_views
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef, ViewsRef
from bsl.storage.errors import SourceError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.os_errors import writing
from bsl.storage.filesystem.spelling import did_you_mean
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.storage.sources.read import read_beside, source_columns
from bsl.storage.sources.sources import ResolvedSource
from bsl.storage.sources.word_vectors import ResolvedWordNet, find_wordnet
from bsl.tasks.embedding.encoders import resolve_named_model
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.ui import progress_of, show

if TYPE_CHECKING:
    from bsl.models.views.config import AnyViewMethod
    from bsl.tasks.stage.run_context import RunContext


SLICE_ROWS = 8192

Rewrite = Callable[[Sequence[str], Sequence[int]], list[str]]
"""Function from sentences and a seed for each sentence to their views."""


def rewrite_corpus(
    context: StageContext, corpus: CorpusRef, method: str, lang: str | None, seed: int, rewrite: Rewrite
) -> None:
    """Write a view of each sentence of a language (None: of all), slice by slice; a resumed run reuses finished slices.

    The scratch folder may disappear at any time: another run of the same stage deletes it after publishing.
    """
    sentences = context.store.scan(corpus)
    total = sentences.select(pl.len()).collect().item()
    scratch, advance = context.store.scratch(context.ref), progress_of(f"view {method}, sentences")
    for start in range(0, total, SLICE_ROWS):
        finished = scratch / f"{method}-{start:012}.parquet"
        try:
            views = pl.read_parquet(finished, glob=False)
        except FileNotFoundError:
            rows = sentences.slice(start, SLICE_ROWS)
            sources = (rows if lang is None else rows.filter(pl.col("lang") == lang)).collect()
            views = _views(sources, method, seed, rewrite)
            with writing(finished), atomic_write(finished) as unfinished:
                views.write_parquet(unfinished)
        context.draft.write(views)
        advance(min(start + SLICE_ROWS, total), total, "")


def _views(sources: pl.DataFrame, method: str, seed: int, rewrite: Rewrite) -> pl.DataFrame:
    seeds = sources.select(scattered(pl.col("sentence_id"), seed)).to_series()
    texts = pl.Series(rewrite(sources["text"].to_list(), seeds.to_list()), dtype=pl.String)
    return sources.select("sentence_id", method=pl.lit(method), text=texts).with_columns(normalize(pl.col("text")))


@stage(ref=ViewsRef, version=1)
def crop(context: StageContext, corpus: CorpusRef, view: CropView) -> None:
    """Crop each sentence of the language to some of its words, once for each method name of the view."""
    from bsl.models.views.cropping import crop_words

    for number, method in enumerate(view.methods, start=1):
        rewrite_corpus(context, corpus, method, view.lang, view.seed, partial(crop_words, view=view, number=number))


@stage(ref=ViewsRef, version=1)
def deleted(
    context: StageContext,
    corpus: CorpusRef,
    tokenizer: str,  # noqa: ARG001 - version of the word tokenizer, for the key
    view: DeletedView,
) -> None:
    """Delete some words of each sentence of the language."""
    from bsl.models.views.cropping import delete_words

    rewrite_corpus(context, corpus, view.name, view.lang, view.seed, partial(delete_words, view=view))


@stage(ref=ViewsRef, version=1)
def entail(context: StageContext, corpus: CorpusRef, nli: ArtifactRef, view: EntailView) -> None:
    """Collect the hypotheses that each sentence entails, from labelled pairs."""
    sentences, pairs = context.store.scan(corpus), context.store.scan(nli)
    bits = bits_for(max(context.store.manifest(ref).rows for ref in (corpus, nli)))
    with context.store.workspace() as scratch:
        context.draft.write_all(entailed_views(sentences, pairs, view, bits, scratch))
    counts = context.draft.scan().group_by("method").len().sort("method").collect(engine="streaming")
    context.draft.note({"views": dict(counts.iter_rows())})


CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 2048, 32_768


@stage(ref=ViewsRef, version=2, uses_torch=True)
def mlm(context: StageContext, corpus: CorpusRef, model: ResolvedModel, view: MaskedView) -> None:
    """Mask tokens of each sentence and refill them by a masked language model."""
    # Imported here, so that a run with all stages cached does not import torch and transformers.
    from bsl.models.views.refilling import RefillModel, refill

    device = device_of(context.site)
    tokens = CPU_BATCH_TOKENS if device == "cpu" else GPU_BATCH_TOKENS
    fill = partial(refill, model=RefillModel(model.folder, device), view=view, batch_tokens=tokens)
    rewrite_corpus(context, corpus, "mlm", view.lang, view.seed, fill)


LANG: Final = "en"
"""Language of WordNet."""


@stage(ref=ViewsRef, version=2)
def synonym(
    context: StageContext,
    corpus: CorpusRef,
    wordnet: ResolvedWordNet,
    lexicon: str,  # noqa: ARG001 - version of the inflected forms, for the key
    view: SynonymView,
) -> None:
    """Replace words of each English sentence by synonyms from WordNet."""
    from bsl.models.views.synonyms import count_replacements, replace_synonyms, wordnet_synonyms

    synonyms = wordnet_synonyms(wordnet.folder, view.senses, inflect=view.inflect)
    rewrite_corpus(context, corpus, "synonym", LANG, view.seed, partial(replace_synonyms, synonyms=synonyms, view=view))
    # Counted over the complete corpus, because a resumed run does not recompute the first slices.
    english = context.store.scan(corpus).filter(pl.col("lang") == LANG).select("text")
    texts = (text for batch in english.collect_batches(chunk_size=SLICE_ROWS) for text in batch["text"])
    context.draft.note({**count_replacements(texts, synonyms, view)})


@stage(ref=ViewsRef, version=3)
def column_view(
    context: StageContext, sources: tuple[ResolvedSource, ...], corpus: CorpusRef, view: GivenView, max_bad_share: float
) -> None:
    """Read a column as a view of the sentences, from all sources that have the column.

    Raises:
        SourceError: No source has the column beside its sentences, or a source has several text columns.
    """
    frames = (
        frame
        for source in sources_with(sources, view)
        for frame in read_beside(source, view.column, ReadReport(source.name), max_bad_share)
    )
    table, counts = given_views(frames, context.store.scan(corpus), view.method)
    context.draft.write(table)
    context.draft.note({"views": counts.pop("views"), "rows": {**counts}})
    names = {
        "read": "read",
        "empty": "without a view",
        "outside": "of sentences outside the corpus",
        "repeated": "with a further view of a sentence; the first counts",
    }
    rows = [{"rows": name, "n": counts[count]} for count, name in names.items()]
    show(Table.of(f"Rows of the column {view.column!r}", rows))


def sources_with(sources: Sequence[ResolvedSource], view: GivenView) -> list[ResolvedSource]:
    """Return the sources that have the column of a view beside their sentences.

    Raises:
        SourceError: No source has it; the message lists the columns.
    """
    beside = [(source, source_columns(source)) for source in sources if source.columns != (view.column,)]
    matching = [source for source, columns in beside if view.column in columns]
    if not matching:
        found = tuple(dict.fromkeys(name for _, columns in beside for name in columns))
        raise SourceError(
            f"augment.given: no source has a column {view.column!r} beside its sentences (found "
            f"{', '.join(map(repr, found)) or 'no other column'}).{did_you_mean(view.column, found)} Name one of them."
        )
    return matching


def check_materials(site: RunContext, view: AnyViewMethod) -> None:
    """Check that the models and the lexicon of a view exist.

    Raises:
        SourceError, AssetError: WordNet or a model is not available.
    """
    if view.lexicon:
        find_wordnet(FILES)
    for name, revision in view.models:
        resolve_named_model(site, name, revision)


def rewritten(site: RunContext, corpus: CorpusRef, nli: ArtifactRef | None, view: AnyViewMethod) -> ViewsRef:
    """Make a view without a translator, or reuse a cached one; models are identified by content, not by name.

    Raises:
        SourceError, AssetError: WordNet, a model or the labelled pairs are not available.
    """
    match view:
        case SynonymView():
            return synonym(site, corpus, find_wordnet(FILES), version("lemminflect"), view)
        case MaskedView():
            model = resolve_named_model(site, view.model, view.revision)
            return mlm(site, corpus, model, view.model_copy(update={"model": model.identity, "revision": None}))
        case EntailView():
            if nli is None:
                raise SourceError(
                    "view entail needs labelled pairs (found none). Pass the artifact of stage `nli` to `augment`."
                )
            return entail(site, corpus, nli, view)
        case DeletedView():
            return deleted(site, corpus, version("nltk"), view)
        case CropView():
            return crop(site, corpus, view)
