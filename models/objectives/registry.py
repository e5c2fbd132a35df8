"""Build the objective that settings describe."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer
    from bsl.models.objectives.config import AnyObjective
    from bsl.models.objectives.objective import Objective


def class_of(settings: type[AnyObjective]) -> type[Objective]:
    """Return the class that computes an objective."""
    module, _, name = settings.objective.partition(":")
    found: type[Objective] = getattr(importlib.import_module(f"bsl.models.objectives.{module}"), name)
    return found


def build_objective(online: Encoder, config: AnyObjective, tokenizer: Tokenizer | None = None) -> Objective:
    """Build the configured objective around an encoder; new weights are drawn from torch's generator.

    Args:
        online: The encoder, which becomes a part of the objective.
        config: Settings of the objective.
        tokenizer: The encoder's tokenizer, which language modelling needs.

    Raises:
        TrainingError: The objective cannot train this encoder.
    """
    objective = class_of(type(config))(online, config)
    if tokenizer is not None:
        objective.on_tokenizer(tokenizer)
    return objective
