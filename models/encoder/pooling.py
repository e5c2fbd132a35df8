"""One vector per sentence from its token vectors, and which layers those come from.

Shapes: B sentences, T tokens (padded on the right), D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from transformers.modeling_outputs import BaseModelOutput

    from models.encoder.config import Pooling

FIRST = 1  # of the hidden states, where 0 is the embedding layer: as SimCSE's code has it (simcse/models.py, Pooler)
LAYERS: Final[Mapping[str, tuple[int, ...]]] = {
    "first-last": (FIRST, -1),
    "second-to-last": (-2,),
    "second-to-last-cls": (-2,),
}
"""Pooling → the hidden states whose average is pooled; the others pool the last layer's output alone."""
POOLER: Final[Pooling] = "cls-pooler"
"""`cls` through the pooler of a bare transformer, which becomes a head; a saved encoder has it as a module."""
AFTER_FIRST: Final[Pooling] = "mean-after-first"
"""The average that leaves the first token out."""
LEAST: Final = 1e-9  # that a sum is divided by, as in sentence-transformers: the mean of no token is zero
AND: Final = "+"  # joins poolings whose vectors stand side by side


def token_vectors(output: BaseModelOutput, pooling: str) -> torch.Tensor:
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


def layer_weights(pooling: str, layers: int) -> torch.Tensor:
    """What `LAYERS` says of a pooling as the weight of each layer's output, (layers,), from the first to the last."""
    weights = torch.zeros(layers)
    for layer in LAYERS[pooling]:
        weights[layer - FIRST if layer > 0 else layer] = 1.0
    return weights


def pool(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, pooling: str, skipped: int = 0) -> torch.Tensor:
    """Pool token vectors to (B, D), in fp32 at least; several poolings to (B, D + D + …), in their order.

    Args:
        tokens_BTD: Token vectors; padding positions may hold anything finite.
        mask_BT: 1 for real tokens, special tokens included, 0 for padding; at least one real token a row.
        pooling: As configured.
        skipped: Tokens at the beginning that are not pooled: those of a prompt that is to steer alone.
    """
    tokens_BTD = precise(tokens_BTD)  # sums over tokens lose digits in bf16
    if skipped:
        mask_BT = mask_BT * (torch.arange(mask_BT.shape[1], device=mask_BT.device) >= skipped)
    vectors = [_WAYS[how](tokens_BTD, mask_BT, skipped) for how in (way_of(part) for part in pooling.split(AND))]
    return torch.cat(vectors, dim=-1) if len(vectors) > 1 else vectors[0]


def way_of(pooling: str) -> str:
    """How a pooling joins the tokens of the layers that it reads."""
    return {"first-last": "mean", "second-to-last": "mean", "second-to-last-cls": "cls"}.get(pooling, pooling)


def _first(tokens_BTD: torch.Tensor, _: torch.Tensor, skipped: int) -> torch.Tensor:
    return tokens_BTD[:, min(skipped, tokens_BTD.shape[1] - 1)]


def _mean(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1).clamp(min=LEAST)


def _mean_after_first(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, skipped: int) -> torch.Tensor:
    return _mean(tokens_BTD, torch.cat([torch.zeros_like(mask_BT[:, :1]), mask_BT[:, 1:]], dim=1), skipped)


def _mean_by_root(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1).clamp(min=LEAST).sqrt()


def _weighted(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    """Later tokens of a decoder have seen more: token t counts t times (SGPT, 2022, section 3)."""
    places_T = torch.arange(1, mask_BT.shape[1] + 1, device=mask_BT.device)
    return _mean(tokens_BTD, mask_BT * places_T, 0)


def _max(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    return tokens_BTD.masked_fill(mask_BT.unsqueeze(-1) == 0, float("-inf")).amax(dim=1)


def _last(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    places_BT = mask_BT * torch.arange(mask_BT.shape[1], device=mask_BT.device)
    last_B1D = places_BT.argmax(dim=1)[:, None, None].expand(-1, 1, tokens_BTD.shape[2])
    return tokens_BTD.gather(1, last_B1D)[:, 0]


_WAYS: Final[Mapping[str, Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]]] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    AFTER_FIRST: _mean_after_first,
    "mean-sqrt": _mean_by_root,
    "weighted": _weighted,
    "last": _last,
}


def precise(x: torch.Tensor) -> torch.Tensor:
    """Of any shape, in fp32 at least: float64 (used by tests) is left as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
