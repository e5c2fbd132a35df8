"""The base of all settings of objectives: all that other code must know of an objective.

The command checks settings without importing torch, so they are not in the modules of their objectives: `bsl_config.py`
has the settings of `bsl.py`, and so on.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field, model_validator

from bsl.models.objectives.columns import Column
from bsl.storage.record import Record

if TYPE_CHECKING:
    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer
    from bsl.models.objectives.objective import Objective


class ObjectiveSettings(Record):
    """Settings of one objective, and all that other code must know of it."""

    title: ClassVar[str]
    """Name in reports."""
    citation: ClassVar[str]
    """Source in reports."""
    objective: ClassVar[str]
    """The class that computes it, as `module:class` below bsl.models.objectives."""
    needs: ClassVar[frozenset[Column]] = frozenset()
    """Columns that pairs must have besides the two views."""
    reads_pairs: ClassVar[bool] = False
    """Whether it trains a cross-encoder, which reads both sentences of a pair as one text."""

    name: str

    @classmethod
    def objective_class(cls) -> type[Objective]:
        """Import and return the class that computes the objective."""
        found: type[Objective] = pkgutil.resolve_name(f"bsl.models.objectives.{cls.objective}")
        return found

    def build(self, online: Encoder, tokenizer: Tokenizer | None = None) -> Objective:
        """Build the objective around an encoder; new weights are drawn from torch's generator.

        Args:
            online: The encoder, which becomes a part of the objective.
            tokenizer: The encoder's tokenizer, which language modelling needs.

        Raises:
            TrainingError: The objective cannot train this encoder.
            TypeError: The objective has a parameter or buffer of its own.
        """
        objective = self.objective_class()(online, self)
        if bare := [name for name in objective.state_dict() if "." not in name]:
            raise TypeError(f"{self.objective}: snapshots would lose {', '.join(bare)}. Put it into an nn.Module.")
        if tokenizer is not None:
            objective.on_tokenizer(tokenizer)
        return objective

    @property
    def label(self) -> str:
        """Name in tables; it may depend on the settings."""
        return self.title

    @property
    def nullable(self) -> frozenset[Column]:
        """The needed columns that may be null in some pairs."""
        return frozenset()

    def with_anchor(self, weight: float) -> Self:
        """Return settings with an anchor to the original encoder; unchanged if the objective can have none."""
        return self.model_copy(update={"anchor_weight": weight} if "anchor_weight" in type(self).model_fields else {})

    def check_sentences(self, count: int) -> None:
        """Check the settings against the number of sentences of the teacher's corpus.

        Raises:
            TrainingError: They need more sentences.
        """

    def collapse_advice(self) -> str:
        """Return the change of settings that keeps vectors apart; empty if the objective has none."""
        return ""

    @property
    def lacks_negatives(self) -> bool:
        """Whether in-batch negatives could be added (`contrastive_weight`)."""
        return False


class VectorSettings(ObjectiveSettings):
    """Settings of an objective whose loss depends on sentence vectors alone."""

    dims: tuple[Annotated[int, Field(ge=2)], ...] = ()
    """Deviation: for each d, add the loss of the vectors' first d dimensions, so that vectors can be truncated to d
    dimensions (Kusupati et al., 2022). () uses full vectors only, as published."""

    @property
    def compares_vectors(self) -> bool:
        """Whether vectors are compared with a teacher's, so that their widths must be equal."""
        return False

    @model_validator(mode="after")
    def _are_of_one_space(self) -> Self:
        if len(set(self.dims)) < len(self.dims):
            raise ValueError(f"dims {list(self.dims)}: a number occurs twice. Give each number of dimensions once.")
        if self.dims and self.compares_vectors:
            raise ValueError(
                f"dims {list(self.dims)} cannot be combined with a queue or a teacher's vectors, whose first "
                "dimensions differ from the encoder's. Set queue=0 and loss=similarities, or remove dims."
            )
        return self
