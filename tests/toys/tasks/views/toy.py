"""View `toy` as a stage."""

from models.views.toy import ToyView, backwards
from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
from tasks.stage.cached import Work, stage
from tasks.stage.run_context import RunContext
from tasks.views.methods import rewrite_corpus


def make_toy(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: ToyView) -> ViewsRef:
    return toy_view(site, corpus, view)


@stage(ref=ViewsRef, version=1)
def toy_view(work: Work, corpus: CorpusRef, view: ToyView) -> None:
    """Each English sentence backwards."""
    rewrite_corpus(work, corpus, view.name, "en", 0, backwards)
