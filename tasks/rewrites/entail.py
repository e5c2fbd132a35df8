"""Views `entail`, `entail-2`, …: the hypotheses that a sentence entails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.augmentation.entailment import entailed_views
from models.augmentation.rewritings import EntailView
from models.augmentation.views import ordered_views
from storage.errors import SourceError
from storage.refs import CorpusRef, NliRef, ViewsRef
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from tasks.site import Site


def make_entail(site: Site, corpus: CorpusRef, nli: NliRef | None, view: EntailView) -> ViewsRef:
    """Make them, or find them made.

    Raises:
        SourceError: there are no labelled pairs.
    """
    if nli is None:
        raise SourceError("view entail needs labelled pairs and got none; give `augment` those that `nli` made")
    return entail(site, corpus, nli, view)


@stage(ref=ViewsRef, version=1)
def entail(work: Work, corpus: CorpusRef, nli: NliRef, view: EntailView) -> None:
    """The hypotheses that each sentence entails."""
    views = ordered_views([entailed_views(work.store.scan(corpus), work.store.scan(nli), view)]).collect()
    work.draft.write(views)
    work.draft.note({"views": dict(views["method"].value_counts().sort("method").iter_rows())})
