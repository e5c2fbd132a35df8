"""Stage: train a linear classifier on the exported encoder's vectors of the user's classes, and test it.

The test is that of the verdict: a classifier of the training labels, on the test labels; without training labels it is
cross-validated. The published classifier is trained on both parts, after the test.

Shapes: N rows, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.corpus.labels import JUDGE, TEACH
from bsl.storage.artifacts.refs import CheckpointRef, ClassifierRef, EmbeddingsRef
from bsl.storage.artifacts.schemas import CLASSIFIER
from bsl.tasks.corpus.evaluation_sets import rows_of
from bsl.tasks.embedding.vectors import open_vectors
from bsl.tasks.evaluation.kind import DRAWS_VERSION
from bsl.tasks.evaluation.own_labels import accuracies_of
from bsl.tasks.evaluation.own_labels import class_rows as test_and_training
from bsl.tasks.evaluation.own_text import HeldOutSet
from bsl.tasks.figures import ClassifierFigures, ExportFigures
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.rendering.numbers import MISSING
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.ui import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_LABELS: Final = "labels"


@stage(ref=ClassifierRef, version=2 + DRAWS_VERSION, uses_torch=True)
def train_classifier(
    context: StageContext, vectors: tuple[EmbeddingsRef, EmbeddingsRef], exported: CheckpointRef, labelled: HeldOutSet
) -> None:
    """Train and test a classifier; also test one on the original encoder's vectors, as the baseline.

    `vectors` are those of the original and of the adapted encoder, of which one is `exported`.

    Raises:
        EvaluationError: a class has too few rows.
    """
    from bsl.models.evaluation.labels import labelled_of
    from bsl.models.evaluation.probe.problem import senteval_order
    from bsl.models.serving.classifier import fit_classifier

    assert labelled.labels is not None  # only labels train a classifier
    table = rows_of(labelled)[_LABELS]
    test, learnt = test_and_training(table)
    adapted = context.store.manifest(exported).figures_as(ExportFigures).adapted
    before, after = (open_vectors(context.store, ref) for ref in vectors)
    encoder = after if adapted else before
    baseline, predicted = (accuracies_of(one, test, learnt).predicted for one in (before, encoder))
    rows = labelled_of(table, "classes", test.names)
    gold_N = rows.gold.astype(np.int64)
    order = senteval_order([list(rows.first)], gold_N)
    classifier = fit_classifier(
        np.asarray(encoder.features(pl.Series(rows.first), _LABELS))[order],
        gold_N[order],
        rows.names,
        text_column=labelled.labels.texts[0],
        is_new_N=(table["part"] == JUDGE).to_numpy()[order] if adapted and labelled.use == "adapt" else None,
        unit_N=rows.units[order],
    )
    classifier.save(context.draft.folder)
    tested_N = test.gold.astype(np.int64)
    confusion = _confusion(tested_N, predicted, rows.names)
    context.draft.write(confusion)
    context.draft.note(
        ClassifierFigures(
            accuracy=float((predicted == tested_N).mean()),
            original_accuracy=float((baseline == tested_N).mean()),
            majority_accuracy=float(np.bincount(tested_N).max() / len(test)),
            test_rows=len(test),
            training_rows=table.filter(part=TEACH).height,
            strength=classifier.settings.strength,
            temperature=classifier.settings.temperature,
            rows=classifier.settings.rows,
        )
    )
    show(class_table(confusion))


def _confusion(gold_N: NDArray[np.int64], predicted_N: NDArray[np.int64], classes: Sequence[str]) -> pl.DataFrame:
    names = pl.Series(list(classes), dtype=pl.String)
    pairs = pl.DataFrame({"label": names[gold_N.tolist()], "predicted": names[predicted_N.tolist()]})
    counts = pairs.group_by("label", "predicted").len("rows").sort("label", "predicted")
    return counts.cast(CLASSIFIER)


def class_table(confusion: pl.DataFrame) -> Table:
    """Return the precision and recall of each class × 100, and their harmonic mean F1."""
    right = confusion.filter(pl.col("label") == pl.col("predicted")).select("label", right="rows")
    rows = confusion.group_by("label").agg(pl.col("rows").sum()).join(right, on="label", how="left").fill_null(0)
    found = confusion.group_by(label="predicted").agg(found=pl.col("rows").sum())
    table = rows.join(found, on="label", how="left").fill_null(0).sort("label")
    classes = [
        {
            "class": label,
            "test rows": f"{count:,}",
            "precision": f"{100 * right / predicted:.1f}" if predicted else MISSING,
            "recall": f"{100 * right / count:.1f}",
            "F1": f"{200 * right / (count + predicted):.1f}",
        }
        for label, count, right, predicted in table.iter_rows()
    ]
    return Table.of("Classes of the test labels, × 100", classes)
