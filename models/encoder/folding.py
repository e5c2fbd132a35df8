"""A linear map of an encoder's vectors as a part of the encoder.

Shapes: D width of the encoder's vectors, K of those that the map gives, E of a module's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from models.encoder.heads import Dense, Normalize

if TYPE_CHECKING:
    from models.encoder.network import Encoder


def fold(encoder: Encoder, weight_KD: torch.Tensor, mean_D: torch.Tensor) -> Encoder:
    """The encoder followed by x ↦ W (x − μ), scaled to length 1: two Dense modules of sentence-transformers, in fp32.

    W may divide by small deviations. So μ is taken out in a module of its own: in W x − W μ, which one module would
    compute, both terms are many times as long as their difference, and so is their rounding.

    Raises:
        EncoderError: The map takes vectors of another width.
    """
    single_D = mean_D.float()
    centred = dense_of(torch.eye(len(mean_D)), -single_D)
    # What μ lost as fp32 is made up for behind W, where it is small beside the vectors.
    mapped = dense_of(weight_KD, weight_KD @ (single_D.double() - mean_D))
    # What scaled the vectors before stays, as a head; it is no longer the last.
    config = encoder.config.model_copy(update={"normalize": True})
    heads = [*encoder.sentence_heads, centred, mapped, Normalize()]
    return encoder.with_heads(config, encoder.token_heads, heads).eval()


def first_of(width: int, kept: int) -> Dense:
    """The module that leaves the first of a vector's dimensions, exactly."""
    return dense_of(torch.eye(kept, width), torch.zeros(kept))


def dense_of(weight_ED: torch.Tensor, bias_E: torch.Tensor) -> Dense:
    """The module x ↦ W x + b, in fp32."""
    with torch.device("meta"):  # draws no random numbers
        dense = Dense(weight_ED.shape[1], weight_ED.shape[0], activation=nn.Identity)
    weights = {"linear.weight": weight_ED, "linear.bias": bias_E}
    dense.load_state_dict({name: tensor.float().contiguous() for name, tensor in weights.items()}, assign=True)
    return dense
