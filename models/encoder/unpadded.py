"""Run a transformer without padding (packed): token ids of many sentences are concatenated in one flat array.

Layers that work token by token (embeddings, linears, norms: most of the arithmetic) see one row of N tokens. Only
attention separates sentences:

- On an NVIDIA GPU one kernel takes all sentences, and reads where each begins and ends, unless scores have a bias.
- Sentences grouped by length need neither padding nor mask. On a CPU this pays always, on a GPU for large groups.
- On other GPUs all sentences are one padded group, because many small kernels would cost more.

transformers looks up an attention function by the name in the model's configuration and passes keyword arguments on.
Each function registered below wraps one of transformers' own. With a `layout`, tokens attend only within their
sentence; without one, the wrapped function is called with the model's own mask. So a model is switched once, not for
each pass, and threads may share it for packed and padded passes. packing.py tests whether a model runs packed.

Shapes: B sentences, T tokens of the longest, N tokens of all, D width, H heads, d width of a head.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.backends.cuda import SDPAParams, can_use_efficient_attention
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from bsl.models.runtime.torch_settings import without_cudnn_attention

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel

    from bsl.models.encoder.layouts import Group, Layout

QKV = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # queries, keys and values, (…, H, T, d)
SHORT: Final = 64
"""Tokens; up to here plain matmuls beat torch's fused kernel on CPU: 2 times, bf16 gradients 5 to 10 times.

Also a tile of torch's kernel on a GPU."""
SHORT_IN_TRAINING: Final = 256
"""Tokens, likewise for gradients in bf16: 1.5 times for a step of texts of 95 tokens. It bounds memory."""
PACKED_ATTENTION: Final = {"sdpa": "packed-over-sdpa", "eager": "packed-over-eager"}
"""A model's own attention → our wrapper of it."""
_UNKNOWN: Final = ("softcap", "s_aux")  # changes of the scores that a short trial may not show
_EAGER: Final = "eager_attention_forward"  # function of every architecture with replaceable attention

# The layout of this thread's pass: its models make no attention mask, which would be large, and unused.
_running: ContextVar[Layout | None] = ContextVar("layout", default=None)


def run_packed(backbone: PreTrainedModel, layout: Layout, first: int, **inputs: torch.Tensor) -> torch.Tensor:
    """Return the last hidden states (N, D) of the sentences of a layout.

    Args:
        backbone: A model that runs packed (`packing_of`).
        layout: The sentences, on the model's device.
        first: Position id of a sentence's first token.
        inputs: Further inputs of the model, one value per token: (1, N).
    """
    token = _running.set(layout)
    try:
        with without_cudnn_attention() if layout.ids.is_cuda else nullcontext():
            hidden_1ND: torch.Tensor = backbone(
                input_ids=layout.ids, position_ids=layout.positions + first, layout=layout, **inputs
            ).last_hidden_state
    finally:
        _running.reset(token)
    return hidden_1ND[0]


def running_layout() -> Layout | None:
    """Return the layout of this thread's packed pass; None outside of one."""
    return _running.get()


def _attention_over(name: str) -> Callable[..., Any]:
    """Return the attention that accepts layouts, and calls a model's own attention without one."""

    def attend(
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        layout: Layout | None = None,
        **options: Any,  # noqa: ANN401  each architecture's own
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if layout is not None:
            if changed := sorted(name for name in _UNKNOWN if options.get(name) is not None):
                raise ValueError(f"its attention has {', '.join(changed)}")
            shared = query.shape[1] // key.shape[1]  # heads of queries that share a head of keys and values
            key, value = (x if shared == 1 else x.repeat_interleave(shared, dim=1) for x in (key, value))
            dropout, scaling, bias = options.get("dropout", 0.0), options.get("scaling"), options.get("position_bias")
            return packed_attention((query, key, value), layout, dropout, scaling, bias), None
        plain = _eager_of(module) if name == "eager" else ALL_ATTENTION_FUNCTIONS[name]
        found: tuple[torch.Tensor, torch.Tensor | None] = plain(module, query, key, value, attention_mask, **options)
        return found

    return attend


def attention_of(backbone: PreTrainedModel) -> str | None:
    """Return the name of a model's attention; None if transformers does not show it, and the model then runs padded."""
    return getattr(backbone.config, "_attn_implementation", None)


def _mask(name: str, *arguments: Any, **options: Any) -> torch.Tensor | None:  # noqa: ANN401  transformers' own
    mask: torch.Tensor | None = None if _running.get() else ALL_MASK_ATTENTION_FUNCTIONS[name](*arguments, **options)
    return mask


def _eager_of(module: torch.nn.Module) -> Callable[..., Any]:
    """Return the eager attention of an architecture, which exists only in the file of its modules."""
    files = (vars(sys.modules[kind.__module__]) for kind in type(module).__mro__)
    found: Callable[..., Any] = next(file[_EAGER] for file in files if _EAGER in file)
    return found


def packed_attention(
    qkv: QKV, layout: Layout, dropout: float, scaling: float | None, bias_1HTT: torch.Tensor | None = None
) -> torch.Tensor:
    """Compute attention within each sentence, (1, N, H, d), from queries, keys and values (1, H, N, d).

    `bias_1HTT` is added to the scores of the longest sentence; a shorter one takes its upper left corner.
    """
    given = SDPAParams(*qkv, None, dropout, layout.causal, False)
    if (
        bias_1HTT is None
        and layout.groups[0].padding is not None
        and has_efficient_attention()
        and can_use_efficient_attention(given)
    ):
        return _efficient_attention(qkv, layout, dropout, scaling)
    return _grouped_attention(qkv, layout, dropout, scaling, bias_1HTT)


def has_efficient_attention() -> bool:
    """Return whether torch has its memory-efficient kernel as an operator; without it, sentences are padded."""
    return hasattr(torch.ops.aten, "_efficient_attention_forward")


def _efficient_attention(qkv: QKV, layout: Layout, dropout: float, scaling: float | None) -> torch.Tensor:
    """Call the kernel that torch's attention uses for nested tensors."""
    qkv_1NHd = (x_1HNd.transpose(1, 2) for x_1HNd in qkv)
    bounds, longest = layout.bounds, layout.longest
    backward, mask_kind = torch.is_grad_enabled(), int(layout.causal)
    out_1NHd: torch.Tensor = torch.ops.aten._efficient_attention_forward(
        *qkv_1NHd, None, bounds, bounds, longest, longest, dropout, mask_kind, backward, scale=scaling
    )[0]
    return out_1NHd


def _grouped_attention(
    qkv: QKV, layout: Layout, dropout: float, scaling: float | None, bias_1HTT: torch.Tensor | None
) -> torch.Tensor:
    sizes = [group.tokens for group in layout.groups]
    # Split, not sliced: the gradient of a slice would be a full-size tensor of zeros for every group.
    split = [torch.split(x_1HNd[0].transpose(0, 1), sizes) for x_1HNd in qkv]
    parts = []
    for group, *of_group in zip(layout.groups, *split, strict=True):
        q, k, v = (_by_sentence(x_NHd, group).transpose(1, 2) for x_NHd in of_group)
        tokens = q.shape[2]
        bias = None if bias_1HTT is None else bias_1HTT[..., :tokens, :tokens].to(q.dtype)
        if group.padding is None and tokens <= _most_plain(q):
            if q.is_cuda and bias is None:
                out_BHTd = _tiled_attention((q, k, v), dropout, scaling, causal=layout.causal)
            else:
                out_BHTd = _plain_attention((q, k, v), dropout, scaling, bias, causal=layout.causal)
        else:
            mask = None if group.padding is None else group.padding.real[:, None, None, :]
            if layout.causal:
                mask = _causal(q) if mask is None else mask & _causal(q)
            if bias is not None:
                mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
            out_BHTd = functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling
            )
        out_BTHd = out_BHTd.transpose(1, 2)
        parts.append(out_BTHd.flatten(0, 1) if group.padding is None else group.padding.strip(out_BTHd))
    return torch.cat(parts)[None]


def _most_plain(q: torch.Tensor) -> int:
    """Return the number of tokens up to which torch's fused kernel is the slower one."""
    slow = not q.is_cuda and q.requires_grad and q.dtype == torch.bfloat16
    return SHORT_IN_TRAINING if slow else SHORT


def _plain_attention(
    qkv: QKV, dropout: float, scaling: float | None, bias: torch.Tensor | None, *, causal: bool
) -> torch.Tensor:
    q, k, v = qkv
    scale = q.shape[-1] ** -0.5 if scaling is None else scaling
    scores_BHTT = torch.matmul(q * scale, k.mT)
    if bias is not None:
        scores_BHTT = scores_BHTT + bias
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


for _own, _name in PACKED_ATTENTION.items():
    AttentionInterface.register(_name, _attention_over(_own))
    AttentionMaskInterface.register(_name, partial(_mask, _own))
