"""View `synonym`: words replaced through WordNet."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import polars as pl

from models.views.config import SynonymView
from models.views.synonyms import FILES
from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
from storage.sources.word_vectors import ResolvedWordNet, find_wordnet
from tasks.stage.cached import Work, stage
from tasks.views.slices import SLICE_ROWS, rewrite_corpus

if TYPE_CHECKING:
    from tasks.stage.run_context import RunContext

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
    work: Work,
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
