"""What the pages of `bsl adapt` and `bsl field` show of somebody's text, gathered from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.augmentation.config import ORIGINAL
from models.augmentation.views import view_examples
from models.report.own_text import OwnText
from tasks.reporting.run.content import environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from storage.artifacts.refs import PassagesRef, ViewsRef
    from storage.artifacts.store import Store
    from storage.sources.own_text import TextSource
    from tasks.reporting.run.content import Told

_SAMPLES: Final = 5  # rows of each
_HELD: Final = "Held out: sentences that nothing was learnt from"
_SHORTEST: Final = 12  # letters of a view that shows something


def own_text(
    store: Store,
    passages: PassagesRef,
    views: Mapping[str, ViewsRef],
    sources: Sequence[TextSource],
    labels: str,
    settings: str,
    told: Told,
) -> OwnText:
    """The text with samples.

    Args:
        store: has the artifacts.
        passages: the text, with its held-out parts.
        views: what they are → views of some of its sentences.
        sources: its files.
        labels: what is said of those that were given; empty without any.
        settings: complete, as JSON text.
        told: how to start the same again.
    """
    held = store.scan(passages).filter(pl.col("part") == "report").sort("sentence_id").head(_SAMPLES).collect()
    shown = held.select("text", *(["title"] if held["title"].count() else []), "source")
    return OwnText(
        files=[source.told for source in sources],
        labels=labels,
        counts=store.manifest(passages).figures,
        samples={
            _HELD: shown.to_dicts(),
            **dict(_views(store, passages, views)),
        },
        command=told.command,
        settings=settings,
        environment=environment(),
    )


def _views(
    store: Store, passages: PassagesRef, views: Mapping[str, ViewsRef]
) -> Iterator[tuple[str, list[dict[str, object]]]]:
    columns = ("sentence_id", "method", "text")
    texts = store.scan(passages).select("sentence_id", pl.lit(ORIGINAL).alias("method"), "text").unique("sentence_id")
    for what, ref in views.items():
        made = store.scan(ref).select(columns).filter(pl.col("method") != ORIGINAL)
        both = pl.concat([texts.join(made, on="sentence_id", how="semi").select(columns), made])
        rows = view_examples([both], _SAMPLES, _SHORTEST).to_dicts()
        if rows:
            yield what, rows
