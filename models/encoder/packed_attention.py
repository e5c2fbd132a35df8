"""Concatenated sentences: their layout on a device, and attention within each.

- On an NVIDIA GPU one kernel takes all sentences, and reads where each begins and ends.
- Sentences grouped by length need neither padding nor mask. On a CPU this pays always, on a GPU for large groups.
- On other GPUs all sentences are one padded group, because many small kernels would cost more.

Shapes: B sentences of a group, T tokens of the longest, N tokens of all, H heads, d width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import torch
from torch.backends.cuda import SDPAParams, can_use_efficient_attention
from torch.nn import functional

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QKV = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # queries, keys and values, (…, H, T, d)
SHORT: Final = 64
"""Tokens; up to here plain matmuls beat torch's fused kernel on CPU: 2 times, bf16 gradients 5 to 10 times.

Also a tile of torch's kernel on a GPU."""


@dataclass(frozen=True)
class Padding:
    """Conversion between concatenated tokens and padded rows.

    Attributes:
        real: (B, T), True for tokens, False for padding.
        places: (N,), index of each token in the flattened (B·T) rows.
    """

    real: torch.Tensor
    places: torch.Tensor

    def pad(self, x_NX: torch.Tensor) -> torch.Tensor:
        """Convert (N, …) to (B, T, …), with zeros at padding."""
        # Indices instead of the mask: indexing by a mask would make the CPU wait for the GPU's count.
        flat = x_NX.new_zeros((self.real.numel(), *x_NX.shape[1:])).index_copy(0, self.places, x_NX)
        return torch.unflatten(flat, 0, self.real.shape)

    def strip(self, x_BTX: torch.Tensor) -> torch.Tensor:
        """Convert (B, T, …) to (N, …)."""
        return x_BTX.flatten(0, 1).index_select(0, self.places)


@dataclass(frozen=True)
class Group:
    """Sentences of one attention call: their number, their tokens, and their padding unless all have one length."""

    sentences: int
    tokens: int
    padding: Padding | None


@dataclass(frozen=True)
class Layout:
    """Concatenated sentences, longest first.

    Attributes:
        order: (B,), sentence i of the layout is the caller's row `order[i]`.
        ids: (1, N), token ids.
        positions: (1, N), 0, 1, 2, … from the start of each sentence.
        sentences: (N,), sentence number of each token.
        bounds: (B + 1,) int32, from 0 to N: sentence i has the tokens from `bounds[i]` to `bounds[i + 1]`.
        padding: Pads the token vectors for pooling.
        groups: Groups for attention, which cover all sentences in order.
        causal: Whether a token attends only to itself and earlier tokens.
    """

    order: NDArray[np.int64]
    ids: torch.Tensor
    positions: torch.Tensor
    sentences: torch.Tensor
    bounds: torch.Tensor
    padding: Padding
    groups: tuple[Group, ...]
    causal: bool = False


def packed_attention(qkv: QKV, layout: Layout, dropout: float, scaling: float | None) -> torch.Tensor:
    """Compute attention within each sentence, (1, N, H, d), from queries, keys and values (1, H, N, d)."""
    given = SDPAParams(*qkv, None, dropout, layout.causal, False)
    if layout.groups[0].padding is not None and can_use_efficient_attention(given):
        return _efficient_attention(qkv, layout, dropout, scaling)
    return _grouped_attention(qkv, layout, dropout, scaling)


def _efficient_attention(qkv: QKV, layout: Layout, dropout: float, scaling: float | None) -> torch.Tensor:
    """Call the kernel that torch's attention uses for nested tensors."""
    qkv_1NHd = (x_1HNd.transpose(1, 2) for x_1HNd in qkv)
    bounds, longest = layout.bounds, layout.padding.real.shape[1]
    backward, mask_kind = torch.is_grad_enabled(), int(layout.causal)
    out_1NHd: torch.Tensor = torch.ops.aten._efficient_attention_forward(
        *qkv_1NHd, None, bounds, bounds, longest, longest, dropout, mask_kind, backward, scale=scaling
    )[0]
    return out_1NHd


def _grouped_attention(qkv: QKV, layout: Layout, dropout: float, scaling: float | None) -> torch.Tensor:
    sizes = [group.tokens for group in layout.groups]
    # Split, not sliced: the gradient of a slice would be a full-size tensor of zeros for every group.
    split = [torch.split(x_1HNd[0].transpose(0, 1), sizes) for x_1HNd in qkv]
    parts = []
    for group, *of_group in zip(layout.groups, *split, strict=True):
        q, k, v = (_by_sentence(x_NHd, group).transpose(1, 2) for x_NHd in of_group)
        if group.padding is None and q.shape[2] <= SHORT:
            attention = _tiled_attention if q.is_cuda else _plain_attention
            out_BHTd = attention((q, k, v), dropout, scaling, causal=layout.causal)
        else:
            mask = None if group.padding is None else group.padding.real[:, None, None, :]
            if layout.causal:
                mask = _causal(q) if mask is None else mask & _causal(q)
            out_BHTd = functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling
            )
        out_BTHd = out_BHTd.transpose(1, 2)
        parts.append(out_BTHd.flatten(0, 1) if group.padding is None else group.padding.strip(out_BTHd))
    return torch.cat(parts)[None]


def _plain_attention(qkv: QKV, dropout: float, scaling: float | None, *, causal: bool) -> torch.Tensor:
    q, k, v = qkv
    scale = q.shape[-1] ** -0.5 if scaling is None else scaling
    scores_BHTT = torch.matmul(q * scale, k.mT)
    if causal:
        scores_BHTT = scores_BHTT.masked_fill(~_causal(q), -torch.inf)
    return torch.matmul(functional.dropout(scores_BHTT.softmax(dim=-1), dropout), v)


def _tiled_attention(qkv: QKV, dropout: float, scaling: float | None, *, causal: bool) -> torch.Tensor:
    """Compute attention with as many sentences as fit into a tile of torch's kernel side by side, under a mask."""
    count, heads, tokens, width = qkv[0].shape
    per_tile = min(count, SHORT // tokens)
    bias_LL = _tile_bias(tokens, per_tile, causal, qkv[0].dtype, qkv[0].device)
    full = count // per_tile * per_tile
    parts = []
    for rows, joined in ((slice(full), per_tile), (slice(full, count), count - full)):
        if not joined:
            continue
        length = joined * tokens
        q, k, v = (x_BHTd[rows].transpose(1, 2).reshape(-1, length, heads, width).transpose(1, 2) for x_BHTd in qkv)
        bias = bias_LL[:length, :length] if joined > 1 or causal else None
        out_XHLd = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout, scale=scaling)
        parts.append(out_XHLd.transpose(1, 2).reshape(-1, tokens, heads, width))
    return torch.cat(parts).transpose(1, 2)


@cache
@torch.inference_mode(mode=False)  # the cached tensor may be used in training
def _tile_bias(tokens: int, per_tile: int, causal: bool, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return the bias of the scores (L, L) for L = tokens · per_tile: 0 within a sentence, −∞ elsewhere."""
    number_L = torch.arange(per_tile * tokens) // tokens
    within_LL = number_L[:, None] == number_L
    if causal:
        within_LL = within_LL.tril()
    return torch.zeros(within_LL.shape, dtype=dtype).masked_fill(~within_LL, -torch.inf).to(device)


def _causal(q_BHTd: torch.Tensor) -> torch.Tensor:
    """Return the causal mask (T, T), True where the row's token may attend to the column's."""
    tokens = q_BHTd.shape[2]
    return torch.ones(tokens, tokens, dtype=torch.bool, device=q_BHTd.device).tril()


def _by_sentence(x_NHd: torch.Tensor, group: Group) -> torch.Tensor:
    return torch.unflatten(x_NHd, 0, (group.sentences, -1)) if group.padding is None else group.padding.pad(x_NHd)
