"""The objectives by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.objectives.barlow import Barlow
from models.objectives.bsl import BSL
from models.objectives.contrastive import Contrastive
from models.objectives.simcse import SimCSE
from models.objectives.vicreg import VICReg

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from models.encoder.network import Encoder
    from models.objectives.base import Objective
    from models.objectives.config import ObjectiveConfig

OBJECTIVES: Mapping[str, Callable[[Encoder, Any], Objective]] = {
    "bsl": BSL,
    "contrastive": Contrastive,
    "simcse": SimCSE,
    "vicreg": VICReg,
    "barlow": Barlow,
}


def build_objective(online: Encoder, config: ObjectiveConfig) -> Objective:
    """The objective of a configuration around an encoder, which becomes a part of it; draws new weights from torch."""
    return OBJECTIVES[config.name](online, config)
