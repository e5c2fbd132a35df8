"""View `toy` as a stage."""

from models.augmentation.toy import ToyView, backwards
from storage.refs import CorpusRef, NliRef, ViewsRef
from tasks.rewrites.slices import rewrite_corpus
from tasks.site import Site
from tasks.stage.cached import Work, stage


def make_toy(site: Site, corpus: CorpusRef, nli: NliRef | None, view: ToyView) -> ViewsRef:
    return toy_view(site, corpus, view)


@stage(ref=ViewsRef, version=1)
def toy_view(work: Work, corpus: CorpusRef, view: ToyView) -> None:
    """Each English sentence backwards."""
    rewrite_corpus(work, corpus, view.name, "en", 0, backwards)
