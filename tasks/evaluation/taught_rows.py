"""Rows of the user's labels that trained an encoder: a score on them tells little about new text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bsl.models.corpus.normalize import letters
from bsl.storage.artifacts.lineage import lineage
from bsl.storage.artifacts.refs import CheckpointRef, PairsRef
from bsl.storage.sources.labels import SET_PREFIX
from bsl.storage.sources.model_sources import is_made_here
from bsl.tasks.corpus.evaluation_sets import rows_of
from bsl.tasks.corpus.labels import sides_of
from bsl.tasks.embedding.encoders import find_encoder
from bsl.tasks.evaluation.kinds import kind_of
from bsl.tasks.evaluation.own_labels import LabelledSet
from bsl.tasks.views.pairs import OF_LABELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsl.storage.artifacts.store import Store
    from bsl.storage.sources.model_sources import ResolvedModel
    from bsl.tasks.corpus.evaluation_sets import EvaluationSet
    from bsl.tasks.stage.run_context import RunContext


def notes_on(site: RunContext, model: str, suite: Sequence[str]) -> list[str]:
    """Return `taught_notes` of an encoder and of sets by their names, as in `bsl evaluate`."""
    labelled = [kind_of(name).find(site, name) for name in suite if name.startswith(SET_PREFIX)]
    if not labelled or not is_made_here(model):
        return []
    return taught_notes(site.open_store(), model, find_encoder(site, model, None), labelled)


def taught_notes(
    store: Store, name: str, encoder: CheckpointRef | ResolvedModel, sets: Iterable[EvaluationSet]
) -> list[str]:
    """Return a sentence for each file of labels whose rows trained an encoder of the store.

    Args:
        store: Store of the encoder.
        name: Name of the encoder.
        encoder: The encoder; only of one from the store is it known what trained it.
        sets: Evaluation sets.
    """
    labelled = [one for one in sets if isinstance(one, LabelledSet)]
    texts = _taught(store, encoder) if labelled and isinstance(encoder, CheckpointRef) else pl.Series(dtype=pl.String)
    if texts.is_empty():
        return []
    notes = []
    for one in labelled:
        (rows,) = rows_of(one).values()
        seen = rows.select(
            pl.any_horizontal(letters(pl.col(side)).is_in(texts.implode()) for side in sides_of(one.labels))
        ).to_series()
        if count := int(seen.sum()):
            notes.append(
                f"{count:,} of the {rows.height:,} rows of {one.dataset} trained {name}, so its score there tells "
                "little about new text. Its report has the score on rows that it has not seen."
            )
    return notes


def _taught(store: Store, encoder: CheckpointRef) -> pl.Series:
    """Return the letters of the texts of the labels that trained an encoder, directly or before."""
    if store.manifest(encoder).figures.get("adapted") is False:
        return pl.Series(dtype=pl.String)  # the original encoder, after an adaptation without success
    pairs = [store.scan(PairsRef(key=one.key)) for one in lineage(store, [encoder]) if one.kind == "pairs"]
    sides = [table.filter(source=OF_LABELS).select(text=side) for table in pairs for side in ("text_1", "text_2")]
    if not sides:
        return pl.Series(dtype=pl.String)
    return pl.concat(sides).select(letters(pl.col("text")).unique()).collect().to_series()
