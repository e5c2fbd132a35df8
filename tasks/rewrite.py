"""Views that need no translator, each method an artifact of its own: adding one does not make the others again."""

import polars as pl

from models.augmentation.config import AugmentConfig, EntailView
from models.augmentation.entailment import entailed_views
from models.augmentation.views import ordered_views
from storage.errors import SourceError
from storage.refs import CorpusRef, NliRef, ViewsRef
from tasks.cached import Work, stage
from tasks.site import Site


def rewritten(site: Site, corpus: CorpusRef, config: AugmentConfig, nli: NliRef | None) -> tuple[ViewsRef, ...]:
    """The views by annotators that a configuration asks for.

    Raises:
        SourceError: view `entail` is asked for without labels.
    """
    if config.entail is None:
        return ()
    if nli is None:
        raise SourceError("augment.entail needs labelled pairs, and the run has none; give `augment` those of `label`")
    return (entail(site, corpus, nli, config.entail),)


@stage(ref=ViewsRef, version=1)
def entail(work: Work, corpus: CorpusRef, nli: NliRef, view: EntailView) -> None:
    """The hypotheses that each sentence entails."""
    views = ordered_views([entailed_views(work.store.scan(corpus), work.store.scan(nli), view)]).collect()
    work.draft.write(views)
    work.draft.note({"views": dict(views["method"].value_counts().sort("method").iter_rows())})
