"""The post-hoc transforms, by their settings.

Shapes: N vectors, D their width, K the width they are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.errors import EvaluationError
from models.transforms.bert_flow import Flow
from models.transforms.config import FlowConfig, WhiteningConfig
from models.transforms.transform import Fitting
from models.transforms.whitening import Whitening

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from models.transforms.config import AnyTransform
    from models.transforms.transform import Transform


TRANSFORMS: Final[Mapping[type[AnyTransform], type[Transform]]] = {
    WhiteningConfig: Whitening,
    FlowConfig: Flow,
}
"""To add one: its settings in `config.AnyTransform`, and a line here."""


def fitted_transform(vectors_ND: torch.Tensor, config: AnyTransform, fitting: Fitting | None = None) -> Transform:
    """The transform of a configuration, fitted.

    Raises:
        EvaluationError: as its `fit`; or a vector is not finite.
        TrainingError: as its `fit`.
    """
    bad = (~vectors_ND.isfinite().all(dim=1)).nonzero()
    if len(bad):
        raise EvaluationError(
            f"vector {int(bad[0])} of the corpus is not finite ({len(bad)} of {len(vectors_ND)}), expected numbers; "
            "look at the encoder that made it"
        )
    return TRANSFORMS[type(config)].fit(vectors_ND, config, fitting or Fitting())


def restore_transform(config: AnyTransform, tensors: Mapping[str, torch.Tensor]) -> Transform:
    """A transform that was fitted before."""
    return TRANSFORMS[type(config)](config, tensors)
