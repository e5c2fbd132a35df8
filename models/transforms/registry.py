"""The table of post-hoc transforms: settings → class.

Shapes: N vectors, D their width, K their width after the transform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.models.errors import EvaluationError
from bsl.models.training.snapshots import Execution
from bsl.models.transforms.bert_flow import Flow
from bsl.models.transforms.config import FlowConfig, WhiteningConfig
from bsl.models.transforms.whitening import Whitening

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from bsl.models.transforms.config import AnyTransform, Transform


TRANSFORMS: Final[Mapping[type[AnyTransform], type[Transform]]] = {
    WhiteningConfig: Whitening,
    FlowConfig: Flow,
}
"""To add a transform, add its settings to `config.AnyTransform` and a line here."""


def fitted_transform(vectors_ND: torch.Tensor, config: AnyTransform, execution: Execution | None = None) -> Transform:
    """Fit the configured transform.

    Raises:
        EvaluationError: As the transform's `fit`; or a vector is not finite.
        TrainingError: As the transform's `fit`.
    """
    bad = (~vectors_ND.isfinite().all(dim=1)).nonzero()
    if len(bad):
        raise EvaluationError(
            f"vector {int(bad[0])} of the corpus is not finite ({len(bad)} of {len(vectors_ND)} vectors). Check the "
            "encoder."
        )
    return TRANSFORMS[type(config)].fit(vectors_ND, config, execution or Execution())
