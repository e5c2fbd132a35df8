"""Settings of BSL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field

from bsl.models.objectives.settings import VectorSettings

_SLOW: Final = 0.99  # from a trained encoder, other targets collapse at momentum 0 and hold at 0.999


class BSLConfig(VectorSettings):
    """BSL as published (paper section 3, Table 8); the defaults are the paper's."""

    title: ClassVar[str] = "BSL"
    citation: ClassVar[str] = (
        "Zhang, He, Liu, Bing and Li, 2021. Bootstrapped Unsupervised Sentence Representation Learning. ACL."
    )

    removed: ClassVar[Mapping[str, object]] = {
        "target_contrastive_weight": 0.0,
        "queue": 0,
        "ranking": "listnet",
        "ranking_weight": 0.0,
        "ranking_temperature": 0.05,
        "ranking_target_temperature": 0.025,
    }
    objective = "bsl:BSL"

    name: Literal["bsl"] = "bsl"
    predictor: Literal["paper", "released", "released-2021"] = "paper"
    """`paper`: one d→kd→kd→d block (§4); `released`: three chained d→kd→kd→d blocks, normalised after the first
    linear of each only (BYOLoss.py, where kd is 10d); `released-2021`: the same before the code's correction of
    2021-10-22 (ef8cf63), where view 2 passed the second block twice and the third never."""
    k: int = Field(default=8, ge=1, le=64)
    """Hidden width of the predictor in multiples of the encoder's width d (paper: 8; released code: 10)."""
    norm: Literal["batch", "layer", "none"] = "batch"
    """Normalisation inside the predictor. `batch` is as published, with statistics per view.
    Deviation: `layer` and `none` need no statistics across rows; the author reports little loss of quality."""
    momentum: float = Field(default=0.999, ge=0, le=1)
    """δ of equation 4: weight of the old target at each step; 0 copies the online encoder, 1 freezes the target."""
    momentum_schedule: Literal["constant", "cosine"] = "constant"
    """`constant` as published. Deviation: `cosine` raises δ to 1 over the run (BYOL, section 3.2)."""
    target_dropout: bool = False
    """Whether the target runs with dropout. The paper does not specify it; the released code has it on. The default is
    off, which was better on `bert-mini` with both seeds (FIDELITY.md)."""
    target_norm: Literal["none", "center", "standardize"] = "none"
    """Statistics removed from the target's vectors before the loss; `none` as published.
    Deviation: `center` subtracts a running mean, `standardize` also divides by a running standard deviation. Vectors of
    a small masked language model share a mean direction, so that a constant prediction already has cosine 0.97."""
    target_norm_momentum: float = Field(default=0.9, ge=0, lt=1)
    """Weight of the old running statistics at each step; used by `center` and `standardize` only."""
    loss_scale: Literal["paper", "released"] = "paper"
    """`paper`: equation 2, in [-1, 1]; `released`: 4 + 4 times that, in [0, 8]. Without a contrastive term, the scale
    matters through clipping and Adam's ε only. The term is added to the scaled loss."""
    contrastive_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of an in-batch contrastive term added to the loss.
    Deviation: 0 is published; above 0 the other pairs of the batch serve as negatives (InfoNCE, both directions)."""
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Temperature of the contrastive term; used where its weight is above 0 (SimCSE: 0.05)."""

    @property
    def label(self) -> str:
        """Name in tables, with the term that the paper's method does not have."""
        return f"{self.title} + in-batch negatives" if self.contrastive_weight > 0 else self.title

    def collapse_advice(self) -> str:
        """See `ObjectiveSettings.collapse_advice`."""
        if self.momentum < _SLOW:
            now = f"training.objective.momentum (now {self.momentum:g})"
            return f"Raise {now} to 0.999, so that the target changes slowly"
        if self.target_norm == "none":
            return (
                "Set training.objective.target_norm to 'standardize' or 'center', so that the target has no constant "
                "part"
            )
        if self.lacks_negatives:
            return "Set training.objective.contrastive_weight to 0.1, so that in-batch negatives keep vectors apart"
        return ""

    @property
    def lacks_negatives(self) -> bool:
        """See `ObjectiveSettings.lacks_negatives`."""
        return self.contrastive_weight == 0
