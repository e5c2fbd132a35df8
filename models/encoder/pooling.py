"""One vector per sentence from its token vectors, and which layers those come from.

Shapes: B sentences, T tokens (padded), D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers.modeling_outputs import BaseModelOutput

    from models.encoder.config import Pooling

FIRST = 1  # of the hidden states, where 0 is the embedding layer: as SimCSE's code has it (simcse/models.py, Pooler)
LAYERS: Final[Mapping[Pooling, tuple[int, ...]]] = {
    "first-last": (FIRST, -1),
    "second-to-last": (-2,),
    "second-to-last-cls": (-2,),
}
"""Pooling → the hidden states whose average is pooled; the others pool the last layer's output alone."""
POOLER: Final[Pooling] = "cls-pooler"
"""Of a bare transformer `cls` with its pooler as a head, which a saved encoder has in a module of its own."""
CLS: Final[frozenset[Pooling]] = frozenset({"cls", "second-to-last-cls"})
"""What takes the first token; the others average over tokens."""
AFTER_FIRST: Final[frozenset[Pooling]] = frozenset({"mean-after-first"})
"""What leaves the first token out of the average."""


def token_vectors(output: BaseModelOutput, pooling: Pooling) -> torch.Tensor:
    """Token vectors (B, T, D) to pool: the last layer's, or the mean over the layers that `LAYERS` has.

    Args:
        output: Of the transformer; with hidden states if pooling is one of `LAYERS`.
        pooling: As configured.
    """
    last_BTD = output.last_hidden_state
    assert last_BTD is not None
    if pooling not in LAYERS:
        return last_BTD
    assert output.hidden_states is not None
    layers = [last_BTD if layer == -1 else output.hidden_states[layer] for layer in LAYERS[pooling]]
    return torch.stack(layers).sum(dim=0) / len(layers) if len(layers) > 1 else layers[0]


def layer_weights(pooling: Pooling, layers: int) -> torch.Tensor:
    """What `LAYERS` says of a pooling as the weight of each layer's output, (layers,), from the first to the last."""
    weights = torch.zeros(layers)
    for layer in LAYERS[pooling]:
        weights[layer - FIRST if layer > 0 else layer] = 1.0
    return weights


def pool(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Pool token vectors to (B, D), in fp32 at least.

    Args:
        tokens_BTD: Token vectors; padding positions may hold anything finite.
        mask_BT: 1 for real tokens, special tokens included, 0 for padding; at least one real token a row.
        pooling: `cls` and its like take the first token; the others average the real tokens (paper section 3.2), of
            which those of `AFTER_FIRST` leave out the first.
    """
    tokens_BTD = precise(tokens_BTD)  # sums over tokens lose digits in bf16
    if pooling in CLS:
        return tokens_BTD[:, 0]
    if pooling in AFTER_FIRST:
        mask_BT = torch.cat([torch.zeros_like(mask_BT[:, :1]), mask_BT[:, 1:]], dim=1)
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1)


def precise(x: torch.Tensor) -> torch.Tensor:
    """Of any shape, in fp32 at least: float64 (used by tests) is left as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
