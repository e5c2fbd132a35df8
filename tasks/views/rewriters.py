"""Views that need no translator, each method an artifact of its own: adding one does not make the others again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from models.views.config import CropView, DeletedView, EntailView, MaskedView, Rewriting, SynonymView
from tasks.views.cropping import make_crop
from tasks.views.deletion import make_deleted
from tasks.views.entailment import make_entail
from tasks.views.masked_lm import make_mlm
from tasks.views.synonyms import make_synonym

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.views.config import AugmentConfig
    from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
    from tasks.stage.run_context import RunContext

REWRITERS: Final[dict[type[Rewriting], Callable[[RunContext, CorpusRef, NliRef | None, Any], ViewsRef]]] = {
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
    return tuple(REWRITERS[type(view)](site, corpus, nli, view) for view in config.rewritings)
