"""The section on the classifier of an adaptation: accuracy, classes, confusions, and the same in scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.evaluation.verdict import exceeds_most_frequent
from bsl.tasks.rendering.blocks import Code, Folded, Part, Prose, Row, Table
from bsl.tasks.training.classifier import class_table

if TYPE_CHECKING:
    from bsl.storage.sources.labels import LabelSource
    from bsl.tasks.figures import ClassifierFigures

_MOST_CLASSES: Final = 12  # of a confusion table; more classes are a list of confusions
_MOST_CONFUSIONS: Final = 20
_READ: Final = {"csv": "read_csv({})", "tsv": 'read_csv({}, separator="\\t")', "jsonl": "read_ndjson({})"}
_NOTHING_LEARNED: Final = (
    " Within noise the classifier is no better than that: label more rows, above all of the rarer classes, and check "
    "that the labels follow from the texts."
)
_PLAIN: Final = (
    "A classifier in scikit-learn with the same settings, without calibration; it also has the classes of too few rows "
    "(the encoder's path is in the store):"
)
_CALIBRATED: Final = (
    "The classifier in the artifact is trained on all labels, after this test. Its probabilities are calibrated by a "
    "temperature, fitted on held-out folds of rows that the encoder was not trained on."
)


def classifier_summary(figures: ClassifierFigures) -> str:
    """Return the accuracy of a classifier and of the baseline, as a sentence."""
    trained = figures.training_rows
    has_learned = exceeds_most_frequent(figures.accuracy, figures.test_rows, figures.majority_accuracy)
    by = f"trained on the {trained:,} training rows" if trained else "cross-validated"
    return (
        f"A linear classifier on the exported encoder's vectors is right on {100 * figures.accuracy:.1f} % of "
        f"{figures.test_rows:,} test rows ({by}); on the original encoder's vectors on "
        f"{100 * figures.original_accuracy:.1f} %. The most frequent class alone: "
        f"{100 * figures.majority_accuracy:.1f} %.{'' if has_learned else _NOTHING_LEARNED}"
    )


def classifier_part(
    figures: ClassifierFigures, confusion: pl.DataFrame, labels: LabelSource, encoder: str, report: str
) -> Part:
    """Return the section; `confusion` is the table `classifier`, `encoder` the path of the encoder's folder."""
    return Part(
        "Classifier",
        [
            Prose(classifier_summary(figures)),
            Code(f"bsl classify {report} new.csv out.csv", "sh"),
            class_table(confusion),
            Folded("Confusions", [confusion_table(confusion)]),
            Prose(_CALIBRATED, note=True),
            Prose(_PLAIN),
            Code(scikit_learn(labels, encoder, figures.strength), "python"),
        ],
    )


def card_part(figures: ClassifierFigures, labels: LabelSource) -> Part:
    """Return the section of the encoder's card."""
    folder = "path/to/this/folder"
    return Part(
        "Classifier",
        [
            Prose(classifier_summary(figures)),
            Code(f"bsl classify {folder} new.csv out.csv", "sh"),
            Code(scikit_learn(labels, folder, figures.strength), "python"),
        ],
    )


def confusion_table(confusion: pl.DataFrame) -> Table:
    """Return the counts of true and predicted classes, or the most frequent confusions of many classes."""
    names = sorted({*confusion["label"], *confusion["predicted"]})
    if len(names) > _MOST_CLASSES:
        errors = confusion.filter(pl.col("label") != pl.col("predicted")).sort(
            "rows", "label", descending=[True, False]
        )
        return Table.of("Most frequent confusions", errors.head(_MOST_CONFUSIONS).to_dicts())
    counts = {(label, predicted): rows for label, predicted, rows in confusion.iter_rows()}
    rows = [Row([label, *(f"{counts.get((label, predicted), 0):,}" for predicted in names)]) for label in names]
    return Table("Test rows by true class (rows) and predicted class (columns)", ["class", *names], rows)


def scikit_learn(labels: LabelSource, encoder: str, strength: float) -> str:
    """Return the lines of scikit-learn that train the classifier."""
    read = _READ.get(labels.format, "read_parquet({})").format(repr(labels.path.rpartition("/")[2]))
    text, label = labels.texts[0], labels.label
    return f"""\
import polars as pl
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression

encoder = SentenceTransformer({encoder!r})
rows = pl.{read}.drop_nulls([{text!r}, {label!r}])
classifier = LogisticRegression(C={strength:g}, max_iter=1000)
classifier.fit(encoder.encode(rows[{text!r}].to_list()), rows[{label!r}].to_list())
print(classifier.predict(encoder.encode(["a new text"])))"""
