"""Post-hoc transforms, which are fitted on a corpus's vectors and applied to evaluated vectors: settings and interface.

The command checks settings without importing torch, so the settings name the class of their transform.

Shapes: N vectors, D their width, K their width after the transform.
"""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from bsl.models.errors import EvaluationError
from bsl.storage.record import Record, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from pydantic import JsonValue

    from bsl.models.training.snapshots import Execution


class TransformSettings(Record):
    """Settings of a post-hoc transform."""

    transform: ClassVar[str]
    """The class that computes it, as `module:class` below bsl.models.transforms."""
    folds: ClassVar[bool] = False
    """Whether the transform is a matrix, which can be folded into an encoder (`Transform.linear`)."""

    @classmethod
    def transform_class(cls) -> type[Transform]:
        """Import and return the class that computes the transform."""
        found: type[Transform] = pkgutil.resolve_name(f"bsl.models.transforms.{cls.transform}")
        return found

    def fitted(self, vectors_ND: torch.Tensor, execution: Execution | None = None) -> Transform:
        """Fit the transform.

        Raises:
            EvaluationError: As the transform's `fit`; or a vector is not finite.
            TrainingError: As the transform's `fit`.
        """
        from bsl.models.training.snapshots import Execution

        bad = (~vectors_ND.isfinite().all(dim=1)).nonzero()
        if len(bad):
            raise EvaluationError(
                f"vector {int(bad[0])} of the corpus is not finite ({len(bad)} of {len(vectors_ND)} vectors). Check "
                "the encoder."
            )
        return self.transform_class().fit(vectors_ND, self, execution or Execution())


class WhiteningConfig(TransformSettings):
    """Whitening (Su et al., 2021, "BERT-whitening"): a corpus's vectors get mean 0, variance 1 and no covariance."""

    transform = "whitening:Whitening"
    folds = True
    name: Literal["whitening"] = "whitening"
    dimensions: int | None = Field(default=None, ge=1)
    """Number of directions of largest variance to keep (published: 256 and 384 of 768); None keeps all."""


class FlowConfig(TransformSettings):
    """BERT-flow (Li et al., 2020): Glow makes a corpus's vectors standard normal. Defaults are its code's."""

    transform = "bert_flow:Flow"
    name: Literal["flow"] = "flow"
    levels: int = Field(default=3, ge=1)
    """Levels (config_l3_d3_w32.json, which the script uses); after each level but the last, half of the channels is
    finished."""
    depth: int = Field(default=3, ge=1)
    """Steps per level: actnorm, mixing, coupling."""
    hidden: int = Field(default=32, ge=1)
    """Width of a coupling's two hidden layers."""
    mixing: Literal["reversal", "convolution"] = "reversal"
    """Mixing of channels in a step: reversal of their order, as in the released configuration, or Glow's 1×1
    convolution with trained weights, which the code also offers."""
    lr: float = Field(default=1e-3, gt=0)
    """Learning rate, constant."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled weight decay of all parameters; the code excludes only names that the flow does not have."""
    eps: float = Field(default=1e-6, gt=0)
    """ε of Adam, without bias correction (optimization_bert_flow.py)."""
    clip: float = Field(default=1.0, gt=0)
    """Bound on the norm of the gradient."""
    batch_size: int = Field(default=64, ge=2)
    """Vectors per step: both sentences of the code's 32 pairs. The first batch also initialises every actnorm."""
    epochs: int = Field(default=1, ge=1)
    """Passes over the vectors; each drops a last batch that is not full."""
    max_steps: int | None = Field(default=None, ge=0)
    """Bound on steps; with 0, only the actnorms are initialised, which standardises each dimension."""
    seed: int = 0
    """Seed of the initial weights and of the order of vectors."""


AnyTransform = WhiteningConfig | FlowConfig
"""Union of all transform settings."""
TransformConfig = Annotated[AnyTransform, Field(discriminator="name"), BeforeValidator(named)]


class Transform(ABC):
    """A fitted map from vectors to vectors.

    Attributes:
        config: Settings of the transform.
        tensors: All fitted values, by name.
        figures: Measurements of the fit; empty for a restored transform.
    """

    def __init__(self, config: Any, tensors: Mapping[str, torch.Tensor]) -> None:  # noqa: ANN401 - each has its own
        self.config = config
        self.tensors = dict(tensors)
        self.figures: dict[str, JsonValue] = {}

    @classmethod
    @abstractmethod
    def fit(cls, vectors_ND: torch.Tensor, config: Any, execution: Execution) -> Transform:  # noqa: ANN401
        """Fit the transform on a corpus's vectors.

        Raises:
            EvaluationError: The transform cannot be fitted on these vectors under these settings.
            TrainingError: The fit was asked to stop, or cannot resume from a saved state.
        """

    @abstractmethod
    def apply(self, vectors_ND: torch.Tensor) -> torch.Tensor:
        """Return transformed vectors of the same encoder: (N, K), float32."""

    def linear(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return W (K, D) and μ (D,), float64, if the transform is W (x − μ) scaled to length 1; otherwise None."""
        return None
