"""The table of objectives: settings → class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import models.objectives.config as settings
from models.objectives.bsl import BSL
from models.objectives.contrastive import Contrastive, SimCSE
from models.objectives.distillation import Distil
from models.objectives.isbert import ISBERT
from models.objectives.language_modeling.masked_lm import MaskedLM
from models.objectives.language_modeling.tsdae import TSDAE
from models.objectives.matryoshka import Matryoshka
from models.objectives.redundancy_reduction import Barlow, VICReg
from models.objectives.scl import SCL
from models.objectives.supervised import CrossRegression, CrossSoftmax, Regression, Softmax

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.encoder.network import Encoder
    from models.encoder.static import Tokenizer
    from models.objectives.config import AnyObjective
    from models.objectives.objective import Need, Objective

OBJECTIVES: Mapping[type[AnyObjective], type[Any]] = {
    settings.BSLConfig: BSL,
    settings.ContrastiveConfig: Contrastive,
    settings.SimCSEConfig: SimCSE,
    settings.VICRegConfig: VICReg,
    settings.BarlowConfig: Barlow,
    settings.RegressionConfig: Regression,
    settings.MaskedLMConfig: MaskedLM,
    settings.TSDAEConfig: TSDAE,
    settings.ISBERTConfig: ISBERT,
    settings.SoftmaxConfig: Softmax,
    settings.SCLConfig: SCL,
    settings.CrossRegressionConfig: CrossRegression,
    settings.CrossSoftmaxConfig: CrossSoftmax,
    settings.DistilConfig: Distil,
}


def build_objective(online: Encoder, config: AnyObjective, tokenizer: Tokenizer | None = None) -> Objective:
    """Build the configured objective around an encoder; new weights are drawn from torch's generator.

    Args:
        online: The encoder, which becomes a part of the objective.
        config: Settings of the objective; with `dims`, the objective is wrapped in `Matryoshka`.
        tokenizer: The encoder's tokenizer, which language modelling needs.

    Raises:
        TrainingError: The objective cannot train this encoder.
    """
    objective: Objective = OBJECTIVES[type(config)](online, config)
    if dims := getattr(config, "dims", ()):
        objective = Matryoshka(objective, dims)  # type: ignore[arg-type]  # settings with `dims` are a VectorObjective's
    if tokenizer is not None:
        objective.read_vocabulary(tokenizer)
    return objective


def needs_of(config: AnyObjective) -> frozenset[Need]:
    """Return the columns that pairs must have besides their texts for this objective."""
    needs: frozenset[Need] = OBJECTIVES[type(config)].needs
    return needs


def nullable_of(config: AnyObjective) -> frozenset[Need]:
    """Return the needed columns that may be null in some pairs: scores, if such pairs are rehearsed."""
    rehearses = isinstance(config, settings.RegressionConfig) and config.anchor_weight > 0
    return frozenset({"score"} if rehearses else ())
