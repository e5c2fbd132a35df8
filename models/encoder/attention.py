"""Attention of a model that is given sentences end to end, or as usual: each call says which.

transformers looks an attention up by the name in the model's configuration. Each of the functions below stands over one
of transformers' own: given a `layout`, each sentence attends to itself; given none, the model's own is called with the
model's own mask. So a model is switched once, not around each pass, and threads may share it.

Shapes: B sentences, T tokens of the longest, N tokens of all, H heads, d width of a head.
"""

from __future__ import annotations

import contextlib
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedConfig

SHORT = 64  # tokens; up to here plain products beat torch's fused kernel on a CPU: 2 times, in bf16's gradients 5 to 10
_OVER: Final = {"sdpa": "packed-over-sdpa", "eager": "packed-over-eager"}  # the model's own → the name of ours
_EAGER: Final = "eager_attention_forward"  # of every architecture whose attention can be replaced

_without_mask: ContextVar[bool] = ContextVar("without mask", default=False)


def takes_layouts(config: PreTrainedConfig) -> bool:
    """Switch a model to an attention that takes layouts, unless its own is one that has none here; whether it does."""
    settings: Any = config
    if settings._attn_implementation in _OVER:
        settings._attn_implementation = _OVER[settings._attn_implementation]
    return settings._attn_implementation in _OVER.values()


def takes_none(config: PreTrainedConfig) -> None:
    """Switch a model back to its own attention."""
    settings: Any = config
    own = {name: model_own for model_own, name in _OVER.items()}
    settings._attn_implementation = own.get(settings._attn_implementation, settings._attn_implementation)


@dataclass(frozen=True)
class Padding:
    """How tokens end to end become padded rows and back.

    Attributes:
        real: (B, T), True for tokens, False for padding.
        places: (N,), where each token stands among the B·T.
    """

    real: torch.Tensor
    places: torch.Tensor

    def pad(self, x_NX: torch.Tensor) -> torch.Tensor:
        """(N, …) to (B, T, …), zeros where there is no token."""
        # Places instead of the mask: a mask as index would make a GPU wait for its count.
        flat = x_NX.new_zeros((self.real.numel(), *x_NX.shape[1:])).index_copy(0, self.places, x_NX)
        return torch.unflatten(flat, 0, self.real.shape)

    def strip(self, x_BTX: torch.Tensor) -> torch.Tensor:
        """(B, T, …) to (N, …)."""
        return x_BTX.flatten(0, 1).index_select(0, self.places)


@dataclass(frozen=True)
class Group:
    """Sentences that attend together: how many, their tokens, and their padding unless all are of one length."""

    sentences: int
    tokens: int
    padding: Padding | None


@dataclass(frozen=True)
class Layout:
    """Sentences end to end, longest first.

    Attributes:
        order: (B,) which of the given rows stands where.
        ids: (1, N), token ids.
        positions: (1, N), 0, 1, 2, … from the start of each sentence.
        sentences: (N,), which of them each token is of.
        padding: For the token vectors that pooling sees.
        groups: Covering all sentences in order.
        causal: Whether a token attends to itself and those before it alone.
    """

    order: NDArray[np.int64]
    ids: torch.Tensor
    positions: torch.Tensor
    sentences: torch.Tensor
    padding: Padding
    groups: tuple[Group, ...]
    causal: bool = False


@contextlib.contextmanager
def without_mask() -> Iterator[None]:
    """Have this thread's models make no mask: over all tokens of a layout it would be large, and nobody reads it."""
    token = _without_mask.set(True)
    try:
        yield
    finally:
        _without_mask.reset(token)


def _attend(
    own: str,
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    layout: Layout | None = None,
    **options: Any,  # noqa: ANN401  each architecture's own
) -> tuple[torch.Tensor, torch.Tensor | None]:
    if layout is not None:
        return packed_attention(query, key, value, layout, options.get("dropout", 0.0), options.get("scaling")), None
    plain = _eager_of(module) if own == "eager" else ALL_ATTENTION_FUNCTIONS[own]
    found: tuple[torch.Tensor, torch.Tensor | None] = plain(module, query, key, value, attention_mask, **options)
    return found


def _mask(own: str, *given: Any, **options: Any) -> torch.Tensor | None:  # noqa: ANN401  transformers' own
    made: torch.Tensor | None = None if _without_mask.get() else ALL_MASK_ATTENTION_FUNCTIONS[own](*given, **options)
    return made


def _eager_of(module: torch.nn.Module) -> Callable[..., Any]:
    """The eager attention of an architecture, which stands in the file of its modules and has no name elsewhere."""
    files = (vars(sys.modules[kind.__module__]) for kind in type(module).__mro__)
    found: Callable[..., Any] = next(file[_EAGER] for file in files if _EAGER in file)
    return found


for _own, _name in _OVER.items():
    AttentionInterface.register(_name, partial(_attend, _own))
    AttentionMaskInterface.register(_name, partial(_mask, _own))


def packed_attention(
    query_1HNd: torch.Tensor,
    key_1HNd: torch.Tensor,
    value_1HNd: torch.Tensor,
    layout: Layout,
    dropout: float,
    scaling: float | None,
) -> torch.Tensor:
    """Attention within each sentence: (1, N, H, d)."""
    sizes = [group.tokens for group in layout.groups]
    # Split, not sliced: the gradient of a slice is a whole tensor of zeros for every group.
    split = [torch.split(x_1HNd[0].transpose(0, 1), sizes) for x_1HNd in (query_1HNd, key_1HNd, value_1HNd)]
    parts = []
    for group, *qkv in zip(layout.groups, *split, strict=True):
        q, k, v = (_by_sentence(x_NHd, group).transpose(1, 2) for x_NHd in qkv)
        if group.padding is None and q.shape[2] <= SHORT:
            out_BHTd = _plain_attention(q, k, v, dropout, scaling, causal=layout.causal)
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


def _plain_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout: float, scaling: float | None, *, causal: bool
) -> torch.Tensor:
    scale = q.shape[-1] ** -0.5 if scaling is None else scaling
    scores_BHTT = torch.matmul(q * scale, k.mT)
    if causal:
        scores_BHTT = scores_BHTT.masked_fill(~_causal(q), -torch.inf)
    return torch.matmul(functional.dropout(scores_BHTT.softmax(dim=-1), dropout), v)


def _causal(q_BHTd: torch.Tensor) -> torch.Tensor:
    """(T, T), True where the token of a row may see that of a column."""
    tokens = q_BHTd.shape[2]
    return torch.ones(tokens, tokens, dtype=torch.bool, device=q_BHTd.device).tril()


def _by_sentence(x_NHd: torch.Tensor, group: Group) -> torch.Tensor:
    return torch.unflatten(x_NHd, 0, (group.sentences, -1)) if group.padding is None else group.padding.pad(x_NHd)
