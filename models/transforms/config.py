"""Settings of every post-hoc transform; `name` says which one a section is for."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from models.runtime.named_config import named


class TransformSettings(BaseModel):
    """Settings of a post-hoc transform.

    Attributes:
        folds: Whether the transform is a matrix, which an encoder can take in (`Transform.linear`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    folds: ClassVar[bool] = False


class WhiteningConfig(TransformSettings):
    """Whitening (Su et al., 2021, "BERT-whitening"): a corpus's vectors get mean 0, variance 1 and no covariance."""

    folds: ClassVar[bool] = True
    name: Literal["whitening"] = "whitening"
    dimensions: int | None = Field(default=None, ge=1)
    """Directions of largest variance that are kept (published: 256 and 384 of 768); all of them unless given."""


class FlowConfig(TransformSettings):
    """BERT-flow (Li et al., 2020): Glow makes a corpus's vectors standard normal. Defaults are its code's."""

    name: Literal["flow"] = "flow"
    levels: int = Field(default=3, ge=1)
    """Levels (config_l3_d3_w32.json, which the script takes); after each but the last, half of the channels is done."""
    depth: int = Field(default=3, ge=1)
    """Steps a level: actnorm, mixing, coupling."""
    hidden: int = Field(default=32, ge=1)
    """Width of a coupling's two hidden layers."""
    mixing: Literal["reversal", "convolution"] = "reversal"
    """How a step mixes channels: their order reversed, as the released configuration does, or by Glow's learnt 1×1
    convolution, which the code offers beside it."""
    lr: float = Field(default=1e-3, gt=0)
    """Learning rate, constant."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled, on every parameter: the code excludes by names that the flow's parameters do not have."""
    eps: float = Field(default=1e-6, gt=0)
    """ε of Adam, whose moments are not corrected for their start (optimization_bert_flow.py)."""
    clip: float = Field(default=1.0, gt=0)
    """Bound on the norm of the gradient."""
    batch_size: int = Field(default=64, ge=2)
    """Vectors a step: both sentences of the code's 32 pairs. The first batch also sets every actnorm."""
    epochs: int = Field(default=1, ge=1)
    """Times every vector is seen; in each, a last batch that is not full is left out."""
    max_steps: int | None = Field(default=None, ge=0)
    """Bound on steps; with 0 only the actnorms are set, which standardises each dimension."""
    seed: int = 0
    """Of first weights and of the order of vectors."""


AnyTransform = WhiteningConfig | FlowConfig
"""The union of all of them."""
TransformConfig = Annotated[AnyTransform, Field(discriminator="name"), BeforeValidator(named)]
