"""Memory of a training step: activations of large batches are computed again in the backward pass instead of kept.

Long texts need it: 12,209 tokens in a transformer of 6 layers of width 384 keep 4.8 GiB in fp32. Computed again, they
keep a third, for half as much time more; losses and gradients are the same bits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from transformers import PreTrainedModel

from bsl.models.runtime.memory import usable_bytes

if TYPE_CHECKING:
    from bsl.models.objectives.objective import Objective
    from bsl.models.training.token_cache import TokenCache

logger = logging.getLogger(__name__)

_KEPT: Final = 180  # bytes per token, layer and unit of width, in fp32; bf16 keeps 155 (measured, with attention)
_SHARE: Final = 0.5  # of the usable memory that activations may fill
_SAMPLE: Final = 4096  # pairs whose mean length stands for all


def kept_bytes(objective: Objective, tokens: float) -> int:
    """Return the memory of the activations of a step in bytes.

    Args:
        objective: Its transformers with gradients count.
        tokens: Tokens of a batch, both views.
    """
    sizes = (model.config for model in _learning(objective))
    units = sum(getattr(size, "num_hidden_layers", 0) * getattr(size, "hidden_size", 0) for size in sizes)
    return int(_KEPT * tokens * units)


def compute_again_if_large(objective: Objective, data: TokenCache, batch_size: int, memory: int | None = None) -> bool:
    """Let transformers compute activations again if those of a batch would fill half of the memory.

    Only on a CPU: on a GPU a step is recorded once and replayed. Not for an objective that changes the layers while it
    runs: they would run again unchanged.

    Args:
        objective: On its device.
        data: Pairs of the run.
        batch_size: Pairs of a batch.
        memory: Bytes; None for all that this process may use.

    Returns:
        Whether they are computed again.
    """
    if objective.online.device.type != "cpu" or objective.changes_layers:
        return False
    memory = memory or usable_bytes()
    rows = range(0, len(data), max(1, len(data) // _SAMPLE))
    needed = kept_bytes(objective, batch_size * float(data.lengths_of(np.array(rows)).mean()))
    able = [model for model in _learning(objective) if model.supports_gradient_checkpointing]
    if needed <= _SHARE * memory or not able:
        return False
    for model in able:
        # transformers renamed it: the new name is not in 5.6, the old one will not be in 6.
        enable: Any = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    logger.info(
        "long texts: a step would keep %.1f of %.1f GiB, so activations are computed twice, which takes longer",
        needed / 2**30,
        memory / 2**30,
    )
    return True


def _learning(objective: Objective) -> list[PreTrainedModel]:
    models = (module for module in objective.modules() if isinstance(module, PreTrainedModel))
    return [model for model in models if any(weight.requires_grad for weight in model.parameters())]
