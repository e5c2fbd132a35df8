"""Settings of every objective; `name` says which one a section is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

from pydantic import BeforeValidator, Field

from models.choices import named
from models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from models.objectives.distil_config import DistilConfig
from models.objectives.isbert_config import ISBERTConfig
from models.objectives.language_config import MaskedLMConfig, TSDAEConfig
from models.objectives.supervised_config import (
    CrossRegressionConfig,
    CrossSoftmaxConfig,
    RegressionConfig,
    SCLConfig,
    SoftmaxConfig,
)
from models.objectives.two_branch_config import BarlowConfig, BSLConfig, VICRegConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

AnyObjective = (
    BSLConfig
    | ContrastiveConfig
    | SimCSEConfig
    | VICRegConfig
    | BarlowConfig
    | RegressionConfig
    | MaskedLMConfig
    | TSDAEConfig
    | ISBERTConfig
    | SoftmaxConfig
    | SCLConfig
    | CrossRegressionConfig
    | CrossSoftmaxConfig
    | DistilConfig
)
ObjectiveConfig = Annotated[AnyObjective, Field(discriminator="name"), BeforeValidator(named)]

OBJECTIVE_CONFIGS: Mapping[str, type[AnyObjective]] = {
    config.model_fields["name"].default: config for config in get_args(AnyObjective)
}
"""Every objective's settings by its name."""
