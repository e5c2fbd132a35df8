"""Views `crop` and `crop-2`: runs of a sentence's words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from models.augmentation.rewritings import CropView
from storage.refs import CorpusRef, NliRef, ViewsRef
from tasks.rewrites.slices import rewrite_corpus
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from tasks.site import Site


def make_cropped(site: Site, corpus: CorpusRef, nli: NliRef | None, view: CropView) -> ViewsRef:  # noqa: ARG001
    """Make it, or find it made."""
    return cropped(site, corpus, view)


@stage(ref=ViewsRef, version=1)
def cropped(work: Work, corpus: CorpusRef, view: CropView) -> None:
    """A run of the words of each sentence of the language."""
    from models.augmentation.cropping import crop_words

    seed = 2 * view.seed + (view.name == "crop-2")
    rewrite_corpus(work, corpus, view.name, view.lang, seed, partial(crop_words, view=view))
