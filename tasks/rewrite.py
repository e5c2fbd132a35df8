"""Views that need no translator, each method an artifact of its own: adding one does not make the others again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from models.augmentation.rewritings import CropView, DeletedView, EntailView, MaskedView, Rewriting, SynonymView
from tasks.rewrites.crop import make_crop
from tasks.rewrites.delete import make_deleted
from tasks.rewrites.entail import make_entail
from tasks.rewrites.mlm import make_mlm
from tasks.rewrites.synonym import make_synonym

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.augmentation.config import AugmentConfig
    from storage.refs import CorpusRef, NliRef, ViewsRef
    from tasks.site import Site

REWRITERS: Final[dict[type[Rewriting], Callable[[Site, CorpusRef, NliRef | None, Any], ViewsRef]]] = {
    SynonymView: make_synonym,
    MaskedView: make_mlm,
    EntailView: make_entail,
    DeletedView: make_deleted,
    CropView: make_crop,
}
"""Settings of a view → how it is made, or found made, from a corpus and the labelled pairs of its sources."""


def rewritten(site: Site, corpus: CorpusRef, config: AugmentConfig, nli: NliRef | None) -> tuple[ViewsRef, ...]:
    """The views that a configuration asks for besides translations.

    Raises:
        SourceError: WordNet, a model or the labels are nowhere to be had.
    """
    return tuple(REWRITERS[type(view)](site, corpus, nli, view) for view in config.rewritings)
