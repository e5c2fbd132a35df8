"""View `synonym`: words replaced through WordNet."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from models.augmentation.rewritings import SynonymView
from models.augmentation.wordnet import FILES
from storage.refs import CorpusRef, NliRef, ViewsRef
from storage.wordnet import ResolvedWordNet, find_wordnet
from tasks.rewrites.slices import rewrite_corpus
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from tasks.site import Site


def make_synonym(site: Site, corpus: CorpusRef, nli: NliRef | None, view: SynonymView) -> ViewsRef:  # noqa: ARG001
    """Make it, or find it made.

    Raises:
        SourceError: WordNet is nowhere to be had.
    """
    return synonym(site, corpus, find_wordnet(FILES), version("lemminflect"), view)


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
