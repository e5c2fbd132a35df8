"""Views that need no translator, each method an artifact of its own: adding one does not make the others again."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import polars as pl

from models.augmentation.config import AugmentConfig, EntailView, MaskedView, SynonymView
from models.augmentation.entailment import entailed_views
from models.augmentation.views import ordered_views
from models.augmentation.wordnet import FILES
from models.shuffle import scattered
from models.text.normalize import normalize
from storage.draft import writing
from storage.errors import SourceError
from storage.files import whole
from storage.refs import CorpusRef, NliRef, ViewsRef
from storage.weights import ResolvedModel
from storage.wordnet import ResolvedWordNet, find_wordnet
from tasks.pretrained import resolve_named_model
from tasks.site import Site
from tasks.stage.cached import Work, stage
from tasks.stage.machine import device_of, settle_threads
from tasks.stage.show import progress_of

SLICE_ROWS = 8192  # the most sentences that a killed run makes twice
CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 2048, 32_768

Rewrite = Callable[[Sequence[str], Sequence[int]], list[str]]
"""Sentences and a number of each one's own to their views."""


def rewritten(site: Site, corpus: CorpusRef, config: AugmentConfig, nli: NliRef | None) -> tuple[ViewsRef, ...]:
    """The views `synonym`, `mlm` and `entail`, as far as a configuration asks for them.

    Raises:
        SourceError: WordNet, the masked language model or the labels are nowhere to be had.
    """
    return tuple(_rewritten(site, corpus, config, nli))


def _rewritten(site: Site, corpus: CorpusRef, config: AugmentConfig, nli: NliRef | None) -> Iterator[ViewsRef]:
    if config.synonym:
        yield synonym(site, corpus, find_wordnet(FILES), version("lemminflect"), config.synonym)
    if config.mlm:
        model = resolve_named_model(site, config.mlm.model, config.mlm.revision)
        named = config.mlm.model_copy(update={"model": model.identity, "revision": None})
        yield mlm(site, corpus, model, named)
    if config.entail and nli is None:
        raise SourceError("view entail needs labelled pairs and got none; give `augment` those that `label` made")
    if config.entail and nli:
        yield entail(site, corpus, nli, config.entail)


@stage(ref=ViewsRef, version=1)
def entail(work: Work, corpus: CorpusRef, nli: NliRef, view: EntailView) -> None:
    """The hypotheses that each sentence entails."""
    views = ordered_views([entailed_views(work.store.scan(corpus), work.store.scan(nli), view)]).collect()
    work.draft.write(views)
    work.draft.note({"views": dict(views["method"].value_counts().sort("method").iter_rows())})


@stage(ref=ViewsRef, version=1)
def synonym(
    work: Work,
    corpus: CorpusRef,
    wordnet: ResolvedWordNet,
    lexicon: str,  # noqa: ARG001 - version of the inflected forms, for the key
    view: SynonymView,
) -> None:
    """Each English sentence with words replaced through WordNet."""
    from models.augmentation.synonyms import replace_synonyms, wordnet_synonyms

    replace = partial(replace_synonyms, synonyms=wordnet_synonyms(wordnet.folder, view.senses), view=view)
    rewrite_corpus(work, corpus, "synonym", "en", view.seed, replace)


@stage(ref=ViewsRef, version=2)
def mlm(work: Work, corpus: CorpusRef, model: ResolvedModel, view: MaskedView) -> None:
    """Each sentence with tokens refilled by a masked language model."""
    # Imported here: a run whose stages are all cached never pays for torch and transformers.
    from models.augmentation.masked_lm import MaskedLM, refill

    settle_threads(work.site)
    device = device_of(work.site)
    tokens = CPU_BATCH_TOKENS if device == "cpu" else GPU_BATCH_TOKENS
    fill = partial(refill, model=MaskedLM(model.folder, device), view=view, batch_tokens=tokens)
    rewrite_corpus(work, corpus, "mlm", view.lang, view.seed, fill)


def rewrite_corpus(work: Work, corpus: CorpusRef, method: str, lang: str, seed: int, rewrite: Rewrite) -> None:
    """Write a view of each sentence of a language, slice by slice; what a killed run had finished is not made again.

    The scratch folder may go at any moment: another run that makes the same views drops it when it has published.
    """
    sentences = work.store.scan(corpus)
    total = sentences.select(pl.len()).collect().item()
    scratch, advance = work.store.scratch(work.ref), progress_of(f"view {method}, sentences")
    for start in range(0, total, SLICE_ROWS):
        finished = scratch / f"{start:012}.parquet"
        views = _kept(finished)
        if views is None:
            sources = sentences.slice(start, SLICE_ROWS).filter(pl.col("lang") == lang).collect()
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
