"""What an objective is given in a step: pairs of token sequences, and what is known of each pair.

Shapes: B pairs, D width of the teacher's vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from models.encoder.tokenization import Tokens

Need: TypeAlias = Literal["labels", "scores", "groups", "teacher"]

COLUMN_OF: Final[Mapping[Need, str]] = {
    "labels": "label",
    "scores": "score",
    "groups": "group",
    "teacher": "sentence_id",
}
"""What an objective may need of a batch, and the column of the pairs that it comes from."""


@dataclass(frozen=True)
class Batch:
    """Pairs over a table of sentences; what the objective does not need is None.

    Attributes:
        tokens: The sentences.
        view_1: (B,) sentence number of each pair's first view.
        view_2: (B,) sentence number of each pair's second view.
        labels: (B,) int64, the pair's class.
        scores: (B,) float32 in [0, 1], how alike the two views are said to be.
        groups: (B,) uint64, what a pair belongs to, such as its premise.
        teacher: (B, D) float32, another encoder's vector of the sentence that the pair was made from.
    """

    tokens: Tokens
    view_1: NDArray[np.int64]
    view_2: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None
    scores: NDArray[np.float32] | None = None
    groups: NDArray[np.uint64] | None = None
    teacher: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.view_1)
