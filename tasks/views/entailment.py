"""Views `entail`, `entail-2`, …: the hypotheses that a sentence entails."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from models.runtime.partitions import bits_for
from models.views.config import EntailView
from models.views.entailment import entailed_views
from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
from storage.errors import SourceError
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    import polars as pl

    from tasks.stage.run_context import RunContext


def make_entail(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: EntailView) -> ViewsRef:
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
    sentences, pairs = work.store.scan(corpus), work.store.scan(nli)
    bits = bits_for(max(work.store.manifest(ref).rows for ref in (corpus, nli)))
    counts: Counter[str] = Counter()

    def counted(rows: pl.DataFrame) -> pl.DataFrame:
        counts.update(dict(rows["method"].value_counts().iter_rows()))
        return rows

    with work.store.workspace() as scratch:
        work.draft.write_all(map(counted, entailed_views(sentences, pairs, view, bits, scratch)))
    work.draft.note({"views": dict(sorted(counts.items()))})
