"""A frozen transformer for NVIDIA GPUs: weights in bf16, and GELU within the product before it.

For frozen weights this is faster than autocast, which computes norms and their inputs in fp32.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import nn
from transformers.activations import GELUActivation

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class ProductWithGelu(nn.Module):
    """GELU(x·Wᵀ + b) as one kernel, which saves a pass over the widest vectors of a layer.

    On a GPU cuBLAS computes GELU by its tanh form, which differs from the exact one by at most 5e-4: less than bf16
    rounds.
    """

    def __init__(self, linear: nn.Linear) -> None:
        """Take the weights of a linear layer with a bias."""
        super().__init__()
        self.linear = linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map vectors (…, D) to (…, E)."""
        bias, weight = self.linear.bias, self.linear.weight
        output_NE = torch._addmm_activation(bias, x.flatten(0, -2), weight.t(), use_gelu=True)
        return torch.unflatten(output_NE, 0, x.shape[:-1])


def rounded_copy(transformer: PreTrainedModel) -> PreTrainedModel:
    """Return a copy with weights, but not buffers, in bf16, for inference only."""
    halves = {id(weight): nn.Parameter(weight.bfloat16(), requires_grad=False) for weight in transformer.parameters()}
    copied = copy.deepcopy(transformer, halves)
    for layer in copied.modules():
        linear, activation = getattr(layer, "dense", None), getattr(layer, "intermediate_act_fn", None)
        if isinstance(linear, nn.Linear) and linear.bias is not None and isinstance(activation, GELUActivation):
            # BERT-like models call `dense`, then `intermediate_act_fn`.
            layer.dense, layer.intermediate_act_fn = ProductWithGelu(linear), nn.Identity()
    return copied
