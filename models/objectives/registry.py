"""Which objective a configuration is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from models.objectives.barlow import Barlow
from models.objectives.bsl import BSL
from models.objectives.config import (
    AnyObjective,
    BarlowConfig,
    BSLConfig,
    ContrastiveConfig,
    RegressionConfig,
    SimCSEConfig,
    VICRegConfig,
)
from models.objectives.contrastive import Contrastive
from models.objectives.distil import Distil
from models.objectives.distil_config import DistilConfig
from models.objectives.regression import Regression
from models.objectives.simcse import SimCSE
from models.objectives.vicreg import VICReg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.encoder.network import Encoder
    from models.objectives.base import Objective
    from models.objectives.batch import Need

OBJECTIVES: Mapping[type[AnyObjective], type[Any]] = {
    BSLConfig: BSL,
    ContrastiveConfig: Contrastive,
    SimCSEConfig: SimCSE,
    VICRegConfig: VICReg,
    BarlowConfig: Barlow,
    RegressionConfig: Regression,
    DistilConfig: Distil,
}


def build_objective(online: Encoder, config: AnyObjective) -> Objective:
    """The objective of a configuration around an encoder, which becomes a part of it; draws new weights from torch."""
    objective: Objective = OBJECTIVES[type(config)](online, config)
    return objective


def needs_of(config: AnyObjective) -> frozenset[Need]:
    """What pairs must hold besides their texts for this objective."""
    needs: frozenset[Need] = OBJECTIVES[type(config)].needs
    return needs
