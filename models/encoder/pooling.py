"""One vector per sentence from its token vectors, and which layers those come from.

Shapes: B sentences, T tokens (padded), D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers.modeling_outputs import BaseModelOutput

    from models.encoder.config import Pooling


FIRST = 1  # of the hidden states, where 0 is the embedding layer: as SimCSE's code has it (simcse/models.py, Pooler)


def token_vectors(output: BaseModelOutput, pooling: Pooling) -> torch.Tensor:
    """Token vectors (B, T, D) to pool: the last layer's, or for `first-last` their mean with the first layer's.

    Args:
        output: Of the transformer; with hidden states if pooling is `first-last`.
        pooling: As configured.
    """
    last_BTD = output.last_hidden_state
    assert last_BTD is not None
    if pooling != "first-last":
        return last_BTD
    assert output.hidden_states is not None
    return (output.hidden_states[FIRST] + last_BTD) / 2


def pool(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Pool token vectors to (B, D), in fp32 at least.

    Args:
        tokens_BTD: Token vectors; padding positions may hold anything finite.
        mask_BT: 1 for real tokens, special tokens included, 0 for padding; at least one real token a row.
        pooling: `cls` takes the first token; the others average the real tokens (paper section 3.2).
    """
    tokens_BTD = precise(tokens_BTD)  # sums over tokens lose digits in bf16
    if pooling == "cls":
        return tokens_BTD[:, 0]
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1)


def precise(x: torch.Tensor) -> torch.Tensor:
    """Of any shape, in fp32 at least: float64 (used by tests) is left as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
