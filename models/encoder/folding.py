"""A linear map of an encoder's vectors as a part of the encoder.

Shapes: D width of the encoder's vectors, K of those that the map gives.
"""

from __future__ import annotations

import torch
from torch import nn

from models.encoder.heads import Dense
from models.encoder.network import Encoder


def fold(encoder: Encoder, weight_KD: torch.Tensor, bias_K: torch.Tensor) -> Encoder:
    """The encoder followed by x ↦ W x + b, which sentence-transformers calls a Dense module; in fp32.

    Raises:
        EncoderError: The map takes vectors of another width.
    """
    width_out, width_in = weight_KD.shape
    with torch.device("meta"):  # draws no random numbers
        dense = Dense(width_in, width_out, activation=nn.Identity)
    weights = {"linear.weight": weight_KD, "linear.bias": bias_K}
    dense.load_state_dict({name: tensor.float().contiguous() for name, tensor in weights.items()}, assign=True)
    # What scaled the vectors before stays, as a head; it is no longer the last.
    config = encoder.config.model_copy(update={"normalize": False})
    return Encoder(encoder.backbone, config, list(encoder.token_heads), [*encoder.sentence_heads, dense]).eval()
