"""The uses of an encoder that a verdict names, and the score that answers for each use.

An encoder that is better for one use can be worse for another: training on classes improves a classifier and can ruin
search. So each use has its own score, and the use that the user asks for decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCURACY: Final = "accuracy"
"""Metric: accuracy of a linear classifier."""
GROUPING: Final = "grouping accuracy"
"""Metric: mean accuracy of the nearest neighbour and of the nearest centroid of a few examples."""
SPEARMAN: Final = "spearman"
"""Metric: Spearman correlation of cosines with the scores of pairs."""
RECIPROCAL_RANK: Final = "mean reciprocal rank"
"""Metric: mean reciprocal rank of the answers to questions about a text."""
UseName = Literal["classify", "group", "similarity", "search"]
LabelKind = Literal["classes", "pairs"]
LABELS, TEXT = "labels", "text"
"""Groups of the sets that answer for a use: the user's labels, and questions about the user's text."""


@dataclass(frozen=True)
class EncoderUse:
    """A use of an encoder.

    Attributes:
        name: Value of `--for`.
        title: The use in sentences: *better for …*.
        question: The question that its score answers.
        measure: How its score is computed.
        group: Group of the sets that answer for it.
        metric: Metric of these sets.
        labels: Kind of labels that it needs; None for none.
    """

    name: UseName
    title: str
    question: str
    measure: str
    group: str
    metric: str
    labels: LabelKind | None


USES: Final[Mapping[UseName, EncoderUse]] = {
    use.name: use
    for use in (
        EncoderUse(
            name="classify",
            title="classifying",
            question="Does a classifier that learned from vectors of labelled texts find the class of a new text?",
            measure="accuracy of a linear classifier trained on all training labels",
            group=LABELS,
            metric=ACCURACY,
            labels="classes",
        ),
        EncoderUse(
            name="group",
            title="grouping and few examples",
            question="Are texts of one class near each other, so that a neighbour or five examples find the class?",
            measure="accuracy, mean of the nearest neighbour and of centroids of five examples",
            group=LABELS,
            metric=GROUPING,
            labels="classes",
        ),
        EncoderUse(
            name="similarity",
            title="similarity",
            question="Do cosines order pairs of texts as your scores do?",
            measure="Spearman correlation of cosines with your scores",
            group=LABELS,
            metric=SPEARMAN,
            labels="pairs",
        ),
        EncoderUse(
            name="search",
            title="search in your text",
            question="Does a sentence find the sentence, the title or the other half that belongs to it?",
            measure="MRR of questions about your text",
            group=TEXT,
            metric=RECIPROCAL_RANK,
            labels=None,
        ),
    )
}
"""Use by name, in the order of the tables; the first use that needs the given kind of labels is the default."""


def use_answered_by(group: str, metric: str) -> UseName | None:
    """Return the use for which a set with this group and metric answers; None if for none."""
    return next((use.name for use in USES.values() if (use.group, use.metric) == (group, metric)), None)


def deciding_use(asked: UseName | None, labels: LabelKind | None) -> UseName | None:
    """Return the use that decides: the use asked for, else the one that the given labels are for.

    Args:
        asked: Value of `--for`; None if not given.
        labels: Kind of the given labels; None without labels.

    Returns:
        None without labels if no use was asked for: then nothing decides.

    Raises:
        ValueError: The use asked for needs other labels.
    """
    if asked is None:
        return next((use.name for use in USES.values() if labels and use.labels == labels), None)
    needed = USES[asked].labels
    if needed in (None, labels):
        return asked
    expected = {"classes": "texts with a class", "pairs": "pairs with a score"}
    usable = ", ".join(use.name for use in USES.values() if use.labels in (None, labels))
    raise ValueError(
        f"--for {asked}: needs other labels (found {expected[labels] if labels else 'no labels'}, expected "
        f"{expected[str(needed)]}). Give them with --labels, or use one of --for {usable}"
    )
