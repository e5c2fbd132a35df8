"""Views that need no translator, one stage a method, and the table of methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from models.corpus.normalize import normalize
from models.runtime.partitions import bits_for
from models.runtime.seeded_order import scattered
from models.views.config import CropView, DeletedView, EntailView, GivenView, MaskedView, SynonymView, ViewMethod
from models.views.entailment import entailed_views
from models.views.synonyms import FILES
from models.views.views import given_views
from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
from storage.errors import SourceError
from storage.filesystem.atomic import whole
from storage.filesystem.os_errors import writing
from storage.readers.read_report import ReadReport
from storage.sources.model_sources import ResolvedModel
from storage.sources.read import read_beside, source_columns
from storage.sources.sources import ResolvedSource
from storage.sources.word_vectors import ResolvedWordNet, find_wordnet
from tasks.embedding.encoders import resolve_named_model
from tasks.stage.cached import StageContext, stage
from tasks.stage.device import device_of, limit_threads
from tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from models.views.config import AugmentConfig
    from tasks.stage.run_context import RunContext


SLICE_ROWS = 8192

Rewrite = Callable[[Sequence[str], Sequence[int]], list[str]]
"""Sentences and a number of each one's own to their views."""


def rewrite_corpus(
    work: StageContext, corpus: CorpusRef, method: str, lang: str | None, seed: int, rewrite: Rewrite
) -> None:
    """Write a view of each sentence of a language (None: of all), slice by slice; a killed run's slices are kept.

    The scratch folder may go at any moment: another run that makes the same views drops it when it has published.
    """
    sentences = work.store.scan(corpus)
    total = sentences.select(pl.len()).collect().item()
    scratch, advance = work.store.scratch(work.ref), progress_of(f"view {method}, sentences")
    for start in range(0, total, SLICE_ROWS):
        finished = scratch / f"{method}-{start:012}.parquet"
        views = _kept(finished)
        if views is None:
            rows = sentences.slice(start, SLICE_ROWS)
            sources = (rows if lang is None else rows.filter(pl.col("lang") == lang)).collect()
            views = _views(sources, method, seed, rewrite)
            _keep(views, finished)
        work.draft.write(views)
        advance(min(start + SLICE_ROWS, total), total, "")


def _views(sources: pl.DataFrame, method: str, seed: int, rewrite: Rewrite) -> pl.DataFrame:
    seeds = sources.select(scattered(pl.col("sentence_id"), seed)).to_series()
    texts = pl.Series(rewrite(sources["text"].to_list(), seeds.to_list()), dtype=pl.String)
    return sources.select("sentence_id", method=pl.lit(method), text=texts).with_columns(normalize(pl.col("text")))


def _kept(path: Path) -> pl.DataFrame | None:
    try:
        return pl.read_parquet(path, glob=False)
    except FileNotFoundError:
        return None


def _keep(views: pl.DataFrame, path: Path) -> None:
    with writing(path), whole(path) as unfinished:
        views.write_parquet(unfinished)


def make_crop(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: CropView) -> ViewsRef:  # noqa: ARG001
    """Make them, or find them made."""
    return crop(site, corpus, view)


@stage(ref=ViewsRef, version=1)
def crop(work: StageContext, corpus: CorpusRef, view: CropView) -> None:
    """Some of the words of each sentence of the language, as often as asked."""
    from models.views.cropping import crop_words

    for number, method in enumerate(view.methods, start=1):
        rewrite_corpus(work, corpus, method, view.lang, view.seed, partial(crop_words, view=view, number=number))


def make_deleted(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: DeletedView) -> ViewsRef:  # noqa: ARG001
    """Make it, or find it made."""
    return deleted(site, corpus, version("nltk"), view)


@stage(ref=ViewsRef, version=1)
def deleted(
    work: StageContext,
    corpus: CorpusRef,
    tokenizer: str,  # noqa: ARG001 - version of what cuts words, for the key
    view: DeletedView,
) -> None:
    """Each sentence of the language without some of its words."""
    from models.views.deletion import delete_words

    rewrite_corpus(work, corpus, view.name, view.lang, view.seed, partial(delete_words, view=view))


def make_entail(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: EntailView) -> ViewsRef:
    """Make them, or find them made.

    Raises:
        SourceError: there are no labelled pairs.
    """
    if nli is None:
        raise SourceError("view entail needs labelled pairs and got none; give `augment` those that `nli` made")
    return entail(site, corpus, nli, view)


@stage(ref=ViewsRef, version=1)
def entail(work: StageContext, corpus: CorpusRef, nli: NliRef, view: EntailView) -> None:
    """The hypotheses that each sentence entails."""
    sentences, pairs = work.store.scan(corpus), work.store.scan(nli)
    bits = bits_for(max(work.store.manifest(ref).rows for ref in (corpus, nli)))
    counts: Counter[str] = Counter()

    def counted(rows: pl.DataFrame) -> pl.DataFrame:
        counts.update(dict(rows["method"].value_counts().iter_rows()))
        return rows

    with work.store.workspace() as scratch:
        work.draft.write_all(map(counted, entailed_views(sentences, pairs, view, bits, scratch)))
    work.draft.note({"views": dict(sorted(counts.items()))})


CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 2048, 32_768


def make_mlm(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: MaskedView) -> ViewsRef:  # noqa: ARG001
    """Make it, or find it made; the model's content, not its name, decides which.

    Raises:
        SourceError, AssetError: the model is nowhere to be had.
    """
    model = resolve_named_model(site, view.model, view.revision)
    return mlm(site, corpus, model, view.model_copy(update={"model": model.identity, "revision": None}))


@stage(ref=ViewsRef, version=2)
def mlm(work: StageContext, corpus: CorpusRef, model: ResolvedModel, view: MaskedView) -> None:
    """Each sentence with tokens refilled by a masked language model."""
    # Imported here: a run whose stages are all cached never pays for torch and transformers.
    from models.views.masked_lm import MaskedLM, refill

    limit_threads(work.site)
    device = device_of(work.site)
    tokens = CPU_BATCH_TOKENS if device == "cpu" else GPU_BATCH_TOKENS
    fill = partial(refill, model=MaskedLM(model.folder, device), view=view, batch_tokens=tokens)
    rewrite_corpus(work, corpus, "mlm", view.lang, view.seed, fill)


LANG: Final = "en"
"""Language that WordNet is of."""


def make_synonym(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: SynonymView) -> ViewsRef:  # noqa: ARG001
    """Make it, or find it made.

    Raises:
        SourceError: WordNet is nowhere to be had.
    """
    return synonym(site, corpus, find_wordnet(FILES), version("lemminflect"), view)


@stage(ref=ViewsRef, version=2)
def synonym(
    work: StageContext,
    corpus: CorpusRef,
    wordnet: ResolvedWordNet,
    lexicon: str,  # noqa: ARG001 - version of the inflected forms, for the key
    view: SynonymView,
) -> None:
    """Each English sentence with words replaced through WordNet."""
    from models.views.synonyms import count_replacements, replace_synonyms, wordnet_synonyms

    synonyms = wordnet_synonyms(wordnet.folder, view.senses, inflect=view.inflect)
    rewrite_corpus(work, corpus, "synonym", LANG, view.seed, partial(replace_synonyms, synonyms=synonyms, view=view))
    # Counted of the whole corpus: a run that goes on after a kill has not seen its first slices.
    lots = work.store.scan(corpus).filter(pl.col("lang") == LANG).select("text").collect_batches(chunk_size=SLICE_ROWS)
    texts = (text for lot in lots for text in lot["text"])
    work.draft.note(asdict(count_replacements(texts, synonyms, view)))


def views_of_sources(
    site: RunContext,
    sources: tuple[ResolvedSource, ...],
    corpus: CorpusRef,
    config: AugmentConfig,
    max_bad_share: float,
) -> tuple[ViewsRef, ...]:
    """Make the views that a configuration takes from its sources, or find them made; a method each."""
    return tuple(given(site, sources, corpus, view, max_bad_share) for view in config.given)


@stage(ref=ViewsRef, version=1)
def given(
    work: StageContext, sources: tuple[ResolvedSource, ...], corpus: CorpusRef, view: GivenView, max_bad_share: float
) -> None:
    """Read one column of those sources that have it as a view of their sentences.

    Raises:
        SourceError: no source has the column, or one has several columns of text.
    """
    having = [source for source in sources if view.column in source_columns(source)]
    if not having:
        names = ", ".join(source.name for source in sources)
        raise SourceError(
            f"none of the sources {names} has a column {view.column!r}, which augment.given names; name one "
            "that is there"
        )
    table = given_views(_frames(having, view.column, max_bad_share), work.store.scan(corpus), view.method)
    work.draft.write(table)
    work.draft.note({"views": table.height})


def _frames(sources: Sequence[ResolvedSource], column: str, max_bad_share: float) -> Iterator[pl.DataFrame]:
    for source in sources:
        yield from read_beside(source, column, ReadReport(source.name), max_bad_share)


VIEW_METHODS: Final[dict[type[ViewMethod], Callable[[RunContext, CorpusRef, NliRef | None, Any], ViewsRef]]] = {
    SynonymView: make_synonym,
    MaskedView: make_mlm,
    EntailView: make_entail,
    DeletedView: make_deleted,
    CropView: make_crop,
}
"""Settings of a view → how it is made, or found made, from a corpus and the labelled pairs of its sources."""


def rewritten(site: RunContext, corpus: CorpusRef, config: AugmentConfig, nli: NliRef | None) -> tuple[ViewsRef, ...]:
    """The views that a configuration asks for besides translations.

    Raises:
        SourceError: WordNet, a model or the labels are nowhere to be had.
    """
    return tuple(VIEW_METHODS[type(view)](site, corpus, nli, view) for view in config.rewritings)
