"""View `deleted`: words left out."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from models.views.config import DeletedView
from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
from tasks.stage.cached import Work, stage
from tasks.views.slices import rewrite_corpus

if TYPE_CHECKING:
    from tasks.stage.run_context import RunContext


def make_deleted(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: DeletedView) -> ViewsRef:  # noqa: ARG001
    """Make it, or find it made."""
    return deleted(site, corpus, version("nltk"), view)


@stage(ref=ViewsRef, version=1)
def deleted(
    work: Work,
    corpus: CorpusRef,
    tokenizer: str,  # noqa: ARG001 - version of what cuts words, for the key
    view: DeletedView,
) -> None:
    """Each sentence of the language without some of its words."""
    from models.views.shortening import delete_words

    rewrite_corpus(work, corpus, view.name, view.lang, view.seed, partial(delete_words, view=view))
