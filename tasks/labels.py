"""Labels that a person gives, read once a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.own_labels import sentences_of
from storage.labels import LabelSource, read_labels

if TYPE_CHECKING:
    from models.evaluation.labels import Labelled


def labelled_ids(source: LabelSource) -> pl.Series:
    """The ids of all sentences of labelled texts, cut as those of a corpus are."""
    rows = read_labels(source)
    return sentences_of(pl.concat([rows["text_1"], rows["text_2"]]).drop_nulls())


def labelled_halves(source: LabelSource | None, seed: int) -> dict[str, Labelled]:
    """The halves that choose and report; none without labels.

    Raises:
        EvaluationError: a half has too few rows.
    """
    if source is None:
        return {}
    from models.evaluation.labels import halves_of  # sklearn

    return halves_of(read_labels(source), source.kind, seed)
