"""Samples of the user's text for a reader: what the adapted encoder finds that the original encoder did not find.

All texts that changed are samples, in random order, so that the first ones are a fair choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.corpus.labels import JUDGE
from bsl.storage.artifacts.schemas import SAMPLES
from bsl.tasks.corpus.evaluation_sets import rows_of
from bsl.tasks.corpus.labels import sides_of
from bsl.tasks.evaluation.own_labels import accuracies_of, class_rows
from bsl.tasks.evaluation.own_text import questions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.evaluation.own_text import HeldOutSet

NEIGHBOUR, CLASS = "neighbour", "class"
"""Kinds of samples: a text with its nearest text; a text with the class that a classifier finds."""
_PLACE: Final = "samples"
_LABELS: Final = "labels"


def samples_of(text: HeldOutSet, before: Vectors, after: Vectors) -> pl.DataFrame:
    """Return the table `samples` of held-out texts that changed between two encoders, in random order."""
    changed = pl.concat([_neighbours(text, before, after), _classes(text, before, after)])
    return changed.sort("kind", "text", "label").sample(fraction=1, shuffle=True, seed=0)


def _neighbours(text: HeldOutSet, before: Vectors, after: Vectors) -> pl.DataFrame:
    """Return texts whose nearest text changed: test labels among each other, else the queries of a question."""
    if text.labels is not None:
        rows = rows_of(text)[_LABELS].filter(part=JUDGE)
        texts = pl.concat([rows[side].alias("text") for side in sides_of(text.labels)]).unique().sort().to_list()
        found = [_nearest(texts, texts, np.arange(len(texts)), encoder) for encoder in (before, after)]
        return _changed(NEIGHBOUR, texts, [None] * len(texts), *found)
    question = next(iter(questions_of(text).values()))
    found = [_nearest(question.queries, question.targets, question.own, encoder) for encoder in (before, after)]
    return _changed(NEIGHBOUR, question.queries, [question.targets[answer] for answer in question.gold], *found)


def _classes(text: HeldOutSet, before: Vectors, after: Vectors) -> pl.DataFrame:
    """Return test rows whose class is found by a classifier of one encoder only; an empty table without classes."""
    if text.labels is None or text.labels.kind != "classes":
        return pl.DataFrame(schema=SAMPLES)
    labelled, learnt = class_rows(rows_of(text)[_LABELS])
    names = np.array(labelled.names)
    labels = names[labelled.gold.astype(np.int64)]
    found = [names[accuracies_of(encoder, labelled, learnt).predicted] for encoder in (before, after)]
    changed = np.flatnonzero((found[0] == labels) != (found[1] == labels))
    texts = [labelled.first[row] for row in changed]
    return _changed(CLASS, texts, labels[changed].tolist(), *(one[changed].tolist() for one in found))


def _nearest(queries: Sequence[str], pool: Sequence[str], own: NDArray[np.int64], encoder: Vectors) -> list[str]:
    """Return the text of the pool nearest to each query; `own` is the number of the query in the pool, or -1."""
    from bsl.models.evaluation.geometry import nearest_of_others

    vectors, targets = (encoder.features(pl.Series(list(texts)), _PLACE) for texts in (queries, pool))
    return [pool[row] for row in nearest_of_others(vectors, targets, own, np.arange(len(pool)))]


def _changed(
    kind: str, texts: Sequence[str], labels: Sequence[str | None], before: Sequence[str], after: Sequence[str]
) -> pl.DataFrame:
    columns = {"text": list(texts), "label": list(labels), "before": list(before), "after": list(after)}
    table = pl.DataFrame({"kind": [kind] * len(texts), **columns}, schema=SAMPLES)
    return table.filter(pl.col("before") != pl.col("after"))
