"""Pooling: combine the token vectors of a sentence into one vector.

`POOLINGS` is the only list of poolings: settings are checked against it, and it says how a folder saves each of them.
The command checks settings without torch, so this module imports torch only where it computes.

Shapes: B sentences, T tokens (padded on the right), D width of token vectors, L layers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from pydantic import AfterValidator, WithJsonSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch
    from transformers.modeling_outputs import BaseModelOutput

    Combine: TypeAlias = Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]

FIRST_LAYER: Final = 1  # index in hidden states, where 0 is the embedding layer (SimCSE, simcse/models.py, Pooler)
MIN_DIVISOR: Final = 1e-9  # lower bound of divisors, as in sentence-transformers: the mean of no token is zero
_PLUS: Final = "+"


@dataclass(frozen=True)
class Mode:
    """A mode of sentence-transformers' module Pooling.

    Attributes:
        name: Value of the setting `pooling_mode` of releases since 6.
        switch: Setting of earlier releases.
        is_new: Whether old releases do not know the switch, so that it is written only where it is on.
    """

    name: str
    switch: str
    is_new: bool = False


CLS: Final = Mode("cls", "pooling_mode_cls_token")
MAX: Final = Mode("max", "pooling_mode_max_tokens")
MEAN: Final = Mode("mean", "pooling_mode_mean_tokens")
MEAN_SQRT: Final = Mode("mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens")
WEIGHTED: Final = Mode("weightedmean", "pooling_mode_weightedmean_tokens", is_new=True)
LAST: Final = Mode("lasttoken", "pooling_mode_lasttoken", is_new=True)
MODES: Final = (CLS, MAX, MEAN, MEAN_SQRT, WEIGHTED, LAST)
"""All modes; releases before 6 concatenate the vectors of several modes in this order."""

LAYER_WEIGHTS: Final = "WeightedLayerPooling"
TOKEN_WEIGHTS: Final = "WordWeights"
POOLER: Final = "Dense"


@dataclass(frozen=True)
class Pooling:
    """A pooling, or several whose vectors are concatenated.

    Attributes:
        name: Name in settings.
        combine: Maps token vectors (B, T, D), a mask (B, T) and a number of skipped tokens to (B, D).
        modes: Modes of the saved module Pooling; one vector each.
        module: Saved module that makes the pooling different from its modes: layer weights or token weights before
            Pooling, or a dense layer after it. Empty if there is none.
        layers: Indices of the hidden states whose mean is pooled.
    """

    name: str
    combine: Combine
    modes: tuple[Mode, ...]
    module: str = ""
    layers: tuple[int, ...] = (-1,)

    @property
    def reads_all_layers(self) -> bool:
        """Whether the transformer must output all hidden states."""
        return self.layers != (-1,)

    @property
    def uses_pooler(self) -> bool:
        """Whether the vectors pass through the pooler of a bare transformer, which is saved as a head."""
        return self.module == POOLER

    def token_vectors(self, output: BaseModelOutput) -> torch.Tensor:
        """Return the token vectors (B, T, D) to pool: the mean over `layers` of a transformer's output."""
        import torch

        last_BTD = output.last_hidden_state
        assert last_BTD is not None
        if not self.reads_all_layers:
            return last_BTD
        assert output.hidden_states is not None
        layers = [last_BTD if layer == -1 else output.hidden_states[layer] for layer in self.layers]
        return torch.stack(layers).sum(dim=0) / len(layers) if len(layers) > 1 else layers[0]

    def layer_weights(self, count: int) -> torch.Tensor:
        """Return the weight of each of L = `count` layers: 1 if the layer is averaged, else 0."""
        import torch

        weights_L = torch.zeros(count)
        for layer in self.layers:
            weights_L[layer - FIRST_LAYER if layer > 0 else layer] = 1.0
        return weights_L

    def pool(self, tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, skipped: int = 0) -> torch.Tensor:
        """Pool token vectors to (B, D), in fp32 at least; several poolings to (B, D + D + …), in their order.

        Args:
            tokens_BTD: Token vectors; any finite values at padding positions.
            mask_BT: 1 for real tokens, special tokens included, 0 for padding; at least one real token per row.
            skipped: Number of tokens to skip at the beginning: a prompt that is not pooled.
        """
        import torch

        # Sums over tokens lose digits in bf16; tests use float64.
        tokens_BTD = tokens_BTD.to(torch.promote_types(tokens_BTD.dtype, torch.float32))
        if skipped:
            mask_BT = mask_BT * (_positions(mask_BT) > skipped)
        return self.combine(tokens_BTD, mask_BT, skipped)


def first(tokens_BTD: torch.Tensor, _: torch.Tensor, skipped: int) -> torch.Tensor:
    """Return the first token that is not skipped."""
    return tokens_BTD[:, min(skipped, tokens_BTD.shape[1] - 1)]


def mean(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    """Return the average weighted by the mask."""
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1).clamp(min=MIN_DIVISOR)


def mean_after_first(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, skipped: int) -> torch.Tensor:
    """Return the average of all tokens but the first, [CLS]."""
    return mean(tokens_BTD, mask_BT * (_positions(mask_BT) > 1), skipped)


def mean_by_root(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    """Return the sum divided by the square root of the number of tokens."""
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1).clamp(min=MIN_DIVISOR).sqrt()


def weighted(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    """Average tokens with weight t for token t, since later tokens of a decoder see more (SGPT, 2022, section 3)."""
    return mean(tokens_BTD, mask_BT * _positions(mask_BT), 0)


def maximum(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    """Return the maximum of each dimension."""
    return tokens_BTD.masked_fill(mask_BT.unsqueeze(-1) == 0, float("-inf")).amax(dim=1)


def last(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    """Return the last token."""
    last_B1D = (mask_BT * _positions(mask_BT)).argmax(dim=1)[:, None, None].expand(-1, 1, tokens_BTD.shape[2])
    return tokens_BTD.gather(1, last_B1D)[:, 0]


def _positions(mask_BT: torch.Tensor) -> torch.Tensor:
    """Return the positions of tokens, (T,), beginning with 1."""
    import torch

    return torch.arange(1, mask_BT.shape[1] + 1, device=mask_BT.device)


POOLINGS: Final[Mapping[str, Pooling]] = {
    pooling.name: pooling
    for pooling in (
        Pooling("mean", mean, (MEAN,)),
        Pooling("cls", first, (CLS,)),
        Pooling("cls-pooler", first, (CLS,), POOLER),
        Pooling("first-last", mean, (MEAN,), LAYER_WEIGHTS, (FIRST_LAYER, -1)),
        Pooling("second-to-last", mean, (MEAN,), LAYER_WEIGHTS, (-2,)),
        Pooling("second-to-last-cls", first, (CLS,), LAYER_WEIGHTS, (-2,)),
        Pooling("mean-after-first", mean_after_first, (MEAN,), TOKEN_WEIGHTS),
        Pooling("max", maximum, (MAX,)),
        Pooling("last", last, (LAST,)),
        Pooling("weighted", weighted, (WEIGHTED,)),
        Pooling("mean-sqrt", mean_by_root, (MEAN_SQRT,)),
    )
}
_PLAIN: Final = {pooling.modes[0]: pooling for pooling in POOLINGS.values() if not pooling.module}


@functools.cache
def pooling_of(name: str) -> Pooling:
    """Return the pooling of a name, or of several joined by `+`.

    Raises:
        ValueError: A name is unknown, or a pooling with a saved module of its own is joined with others.
    """
    if name in POOLINGS:
        return POOLINGS[name]
    from bsl.storage.filesystem.spelling import did_you_mean

    parts, plain = name.split(_PLUS), [pooling.name for pooling in _PLAIN.values()]
    for part in parts:
        if part not in plain:
            problem = f"pooling {part} cannot be joined" if part in POOLINGS else f"unknown pooling {part!r}"
            raise ValueError(
                f"{problem}, expected {', '.join(POOLINGS)}, or several of {', '.join(plain)} joined by +."
                f"{did_you_mean(part, POOLINGS)}"
            )
    return joined([POOLINGS[part].modes[0] for part in parts])


def joined(modes: list[Mode]) -> Pooling:
    """Return the pooling that concatenates the vectors of some modes."""
    parts = [_PLAIN[mode] for mode in modes]
    if len(parts) == 1:
        return parts[0]

    def combine(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, skipped: int) -> torch.Tensor:
        import torch

        return torch.cat([part.combine(tokens_BTD, mask_BT, skipped) for part in parts], dim=-1)

    return Pooling(_PLUS.join(part.name for part in parts), combine, tuple(modes))


def _checked(name: str) -> str:
    return pooling_of(name).name


PoolingName = Annotated[
    str,
    AfterValidator(_checked),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": list(POOLINGS)},
                {
                    "type": "string",
                    "pattern": "^({0})(\\+({0}))+$".format("|".join(pooling.name for pooling in _PLAIN.values())),
                },
            ]
        }
    ),
]
"""Name of a pooling in settings, as `pooling_of` reads it."""
