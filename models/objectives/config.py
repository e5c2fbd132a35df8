"""The list of all objectives; `name` selects one."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, ISBERTConfig, SimCSEConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig, TSDAEConfig
from bsl.models.objectives.supervised_config import (
    CrossRegressionConfig,
    CrossSoftmaxConfig,
    RegressionConfig,
    SCLConfig,
    SoftmaxConfig,
)
from bsl.storage.record import named

AnyObjective = (
    BSLConfig
    | ContrastiveConfig
    | SimCSEConfig
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
