"""Which objective a configuration is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from models.errors import TrainingError
from models.objectives.barlow import Barlow
from models.objectives.bsl import BSL
from models.objectives.contrastive import Contrastive
from models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from models.objectives.cross import CrossRegression, CrossSoftmax
from models.objectives.distil import Distil
from models.objectives.distil_config import DistilConfig
from models.objectives.isbert import ISBERT
from models.objectives.isbert_config import ISBERTConfig
from models.objectives.language_config import MaskedLMConfig, TSDAEConfig
from models.objectives.masked_lm import MaskedLM
from models.objectives.regression import Regression
from models.objectives.scl import SCL
from models.objectives.simcse import SimCSE
from models.objectives.softmax import Softmax
from models.objectives.supervised_config import (
    CrossRegressionConfig,
    CrossSoftmaxConfig,
    RegressionConfig,
    SCLConfig,
    SoftmaxConfig,
)
from models.objectives.tsdae import TSDAE
from models.objectives.two_branch_config import BarlowConfig, BSLConfig, VICRegConfig
from models.objectives.vicreg import VICReg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.encoder.network import Encoder
    from models.encoder.tokenization import Tokenizer
    from models.objectives.base import Objective
    from models.objectives.batch import Need
    from models.objectives.config import AnyObjective

OBJECTIVES: Mapping[type[AnyObjective], type[Any]] = {
    BSLConfig: BSL,
    ContrastiveConfig: Contrastive,
    SimCSEConfig: SimCSE,
    VICRegConfig: VICReg,
    BarlowConfig: Barlow,
    RegressionConfig: Regression,
    MaskedLMConfig: MaskedLM,
    TSDAEConfig: TSDAE,
    ISBERTConfig: ISBERT,
    SoftmaxConfig: Softmax,
    SCLConfig: SCL,
    CrossRegressionConfig: CrossRegression,
    CrossSoftmaxConfig: CrossSoftmax,
    DistilConfig: Distil,
}


def build_objective(online: Encoder, config: AnyObjective, tokenizer: Tokenizer | None = None) -> Objective:
    """The objective of a configuration around an encoder, which becomes a part of it; draws new weights from torch.

    Args:
        online: The encoder.
        config: Which objective.
        tokenizer: The encoder's own, which objectives that guess words must know.

    Raises:
        TrainingError: It is to supervise more dimensions than the encoder has.
    """
    if wide := [kept for kept in getattr(config, "dims", ()) if kept >= online.width]:
        raise TrainingError(
            f"objective {config.name}: dims {wide} of vectors of width {online.width}, expected fewer dimensions than "
            "these have, for the whole always counts; lower training.objective.dims"
        )
    objective: Objective = OBJECTIVES[type(config)](online, config)
    if tokenizer is not None:
        objective.read_vocabulary(tokenizer)
    return objective


def needs_of(config: AnyObjective) -> frozenset[Need]:
    """What pairs must hold besides their texts for this objective."""
    needs: frozenset[Need] = OBJECTIVES[type(config)].needs
    return needs
