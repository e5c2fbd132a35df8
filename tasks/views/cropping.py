"""Views `crop`, `crop-2`, …: runs of a sentence's words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from models.views.config import CropView
from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
from tasks.stage.cached import Work, stage
from tasks.views.slices import rewrite_corpus

if TYPE_CHECKING:
    from tasks.stage.run_context import RunContext


def make_crop(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: CropView) -> ViewsRef:  # noqa: ARG001
    """Make them, or find them made."""
    return crop(site, corpus, view)


@stage(ref=ViewsRef, version=1)
def crop(work: Work, corpus: CorpusRef, view: CropView) -> None:
    """Some of the words of each sentence of the language, as often as asked."""
    from models.views.shortening import crop_words

    for number, method in enumerate(view.methods, start=1):
        rewrite_corpus(work, corpus, method, view.lang, view.seed, partial(crop_words, view=view, number=number))
