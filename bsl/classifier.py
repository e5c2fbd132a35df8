"""Load the classifier of an adaptation, and classify texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from bsl.imports import importing
from bsl.models.encoder.texts import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bsl.tasks.serving.classify import TextClassifier


class Classifier:
    """Linear classifier on an encoder's vectors, from `bsl adapt` with labels of classes.

    Attributes:
        classes: Names of the C classes, in the order of the columns of `predict_proba`.

    Example:
        >>> classifier = Classifier.load("report/latest")  # doctest: +SKIP
        >>> classifier.predict(["Where is my parcel?"])  # doctest: +SKIP
        ['delivery']
    """

    def __init__(self, found: TextClassifier) -> None:
        self._found = found
        self.classes: tuple[str, ...] = found.linear.settings.classes

    @classmethod
    def load(cls, name: str | Path, **settings: object) -> Self:
        """Load a classifier and its encoder.

        Args:
            name: `report/<key>`, `report/latest`, `classifier/<key>`, `checkpoint/<key>`, or the folder of an exported
                encoder.
            **settings: Runtime settings by name, such as `store` and `device`.

        Raises:
            ArtifactMissingError, SourceError: There is no such name, or it has no classifier.
            EvaluationError: The classifier's files are damaged.
        """
        with importing():
            from bsl.runs import context_of
            from bsl.tasks.serving.classify import find_classifier

            context = context_of(settings)
            return cls(find_classifier(context, str(name), "auto"))

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return the most probable class of each text.

        Raises:
            TypeError: `texts` is neither a list nor a column of texts.
            EncoderError: A text has no embedding.
        """
        return [self.classes[number] for number in self.predict_proba(texts).argmax(axis=1)]

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the calibrated probability of each class for each of n texts, (n, C).

        Raises:
            TypeError: `texts` is neither a list nor a column of texts.
            EncoderError: A text has no embedding.
        """
        return self._found.probabilities(texts_of(texts))
