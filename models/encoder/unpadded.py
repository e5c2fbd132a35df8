"""Run a transformer without padding (packed): token ids of many sentences are concatenated in one flat array.

Tokenising once and slicing is two orders of magnitude cheaper per batch than tokenising in every step.

Layers that work token by token (embeddings, linears, norms: most of the arithmetic) see one row of N tokens. Only
attention separates sentences (`packed_attention`).

transformers looks up an attention function by the name in the model's configuration and passes keyword arguments on.
Each function registered below wraps one of transformers' own. With a `layout`, tokens attend only within their
sentence; without one, the wrapped function is called with the model's own mask. So a model is switched once, not for
each pass, and threads may share it for packed and padded passes. `first_position` tests whether a model runs packed.

Shapes: B sentences, T tokens of the longest, N tokens of all, D width.
"""

from __future__ import annotations

import itertools
import logging
import sys
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from models.encoder.packed_attention import Group, Layout, Padding, packed_attention
from models.runtime.device import uploaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

TRIED = (7, 4)  # tokens of the test's two sentences
TOLERANCE = 1e-3  # of the test: wrong positions or leaking attention differ by more, rounding by far less
_OVER: Final = {"sdpa": "packed-over-sdpa", "eager": "packed-over-eager"}  # model's own attention → our wrapper
_EAGER: Final = "eager_attention_forward"  # function of every architecture with replaceable attention

# Whether this thread's models make no attention mask: for a layout it would be large, and unused.
_without_mask: ContextVar[bool] = ContextVar("without mask", default=False)
_trying = threading.Lock()  # a test changes a model's mode and attention, and other threads may start one


@dataclass(frozen=True)
class Tokens:
    """Token ids of n sentences.

    Attributes:
        ids: (total,) int32, all sentences concatenated, special tokens included.
        offsets: (n + 1,) int64; sentence i is `ids[offsets[i]:offsets[i + 1]]`.
        pad_id: The id that fills shorter rows of a batch.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    pad_id: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[int] | NDArray[np.integer]], pad_id: int) -> Tokens:
        """Concatenate the token ids of sentences."""
        ids = np.concatenate([np.zeros(0, dtype=np.int32), *rows]).astype(np.int32, copy=False)
        return cls(ids, np.cumsum([0, *map(len, rows)], dtype=np.int64), pad_id)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Token count of each sentence, (n,)."""
        return np.diff(self.offsets)

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the token counts of some sentences, (len(rows),), without computing all."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def layout(self, rows: NDArray[np.int64]) -> Layout | None:  # noqa: ARG002 - for tokens of fixed shapes
        """Return an existing layout of some rows; None if the caller must make one for each batch."""
        return None

    def take(self, rows: NDArray[np.int64]) -> Tokens:
        """Return a selection of sentences, in the order of `rows`."""
        lengths = self.lengths_of(rows)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        indices = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Tokens(self.ids[indices], offsets, self.pad_id)

    def padded(self, rows: NDArray[np.int64] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return padded rows, or all: ids (B, T) int64, padded on the right, and the mask (B, T), 1 for real tokens."""
        rows = np.arange(len(self)) if rows is None else rows
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        index_BT = starts[:, None] + np.arange(int((ends - starts).max()))
        real_BT = index_BT < ends[:, None]
        ids_BT = np.where(real_BT, self.ids[np.minimum(index_BT, len(self.ids) - 1)], self.pad_id)
        return torch.from_numpy(ids_BT.astype(np.int64)), torch.from_numpy(real_BT.astype(np.int64))


def budget_batches(lengths: NDArray[np.int64], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Group sentences into batches of similar length whose padded size stays within a token budget.

    Args:
        lengths: (n,) tokens per sentence.
        batch_tokens: Bound on rows x longest row; a single longer sentence forms its own batch.

    Yields:
        Row numbers, longest batch first (so that memory is allocated once); equal lengths keep their order.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = max(1, batch_tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + rows]
        start += rows


def lay_out(
    tokens: Tokens, rows: NDArray[np.int64], device: torch.device, *, by_length: bool, causal: bool = False
) -> Layout:
    """Lay out some rows on a device, with one group per sentence length (`by_length`) or one padded group for all."""
    order = np.argsort(-tokens.lengths_of(rows), kind="stable")
    some = tokens.take(rows[order])
    positions = np.arange(len(some.ids)) - np.repeat(some.offsets[:-1], some.lengths)
    padding = _padding(some.lengths, device)
    return Layout(
        order,
        uploaded(some.ids.astype(np.int64), device)[None],
        uploaded(positions, device)[None],
        uploaded(np.repeat(np.arange(len(some)), some.lengths), device),
        uploaded(some.offsets.astype(np.int32), device),
        padding,
        _groups_by_length(some) if by_length else (Group(len(some), len(some.ids), padding),),
        causal,
    )


def _groups_by_length(some: Tokens) -> tuple[Group, ...]:
    cuts = np.flatnonzero(np.diff(some.lengths)) + 1
    bounds = [0, *cuts.tolist(), len(some)]
    return tuple(
        Group(high - low, int(some.offsets[high] - some.offsets[low]), None) for low, high in itertools.pairwise(bounds)
    )


def _padding(lengths: NDArray[np.int64], device: torch.device) -> Padding:
    real_BT = np.arange(int(lengths.max())) < lengths[:, None]
    indices_N = np.flatnonzero(real_BT)
    return Padding(uploaded(real_BT, device), uploaded(indices_N, device))


def run_packed(backbone: PreTrainedModel, layout: Layout, first: int, **inputs: torch.Tensor) -> torch.Tensor:
    """Return the last hidden states (N, D) of the sentences of a layout.

    Args:
        backbone: A model whose `first_position` is not None.
        layout: The sentences, on the model's device.
        first: The model's `first_position`.
        inputs: Further inputs of the model, one value per token: (1, N).
    """
    if layout.ids.is_cuda:
        # cuDNN's kernel, torch's first choice in bf16 on Hopper, is planned again for every new shape, and every batch
        # has a new shape. With it, steps of two layers of BERT-base took 11 times as long in bf16 as in fp32 (H100).
        # It stays off, since the switch is process-wide and another thread may be running.
        torch.backends.cuda.enable_cudnn_sdp(False)
    token = _without_mask.set(True)
    try:
        hidden_1ND: torch.Tensor = backbone(
            input_ids=layout.ids, position_ids=layout.positions + first, layout=layout, **inputs
        ).last_hidden_state
    finally:
        _without_mask.reset(token)
    return hidden_1ND[0]


@torch.no_grad()
def first_position(backbone: PreTrainedModel, pad_id: int, max_length: int) -> int | None:
    """Return the position id of a sentence's first token, or None if the model cannot run packed.

    The test: two short sentences must give the same vectors packed as each alone. RoBERTa-like models count positions
    from the padding id + 1, others from 0. Models with relative position tables or custom attention fail with both.

    Args:
        backbone: The model; its mode is restored.
        pad_id: Id of the padding token.
        max_length: Longest sentence to expect; a sliding window shorter than that is not supported.
    """
    window = getattr(backbone.config, "sliding_window", None)
    if not getattr(backbone, "_supports_attention_backend", False) or (window and max_length > window):
        return None
    with _trying:
        was_training = backbone.training
        backbone.train(False)
        try:
            # In fp32, whatever the caller uses: bf16 rounds by more than the tolerance.
            with torch.autocast(backbone.device.type, enabled=False):
                return _find_position(backbone, pad_id)
        finally:
            backbone.train(was_training)


def _find_position(backbone: PreTrainedModel, pad_id: int) -> int | None:
    """Switch a model to the attention that accepts layouts, and return the first position at which it runs packed.

    If there is none, the model's own attention is restored.
    """
    settings: Any = backbone.config
    original = {name: attention for attention, name in _OVER.items()}
    settings._attn_implementation = _OVER.get(settings._attn_implementation, settings._attn_implementation)
    if settings._attn_implementation not in original:
        return None
    # An index beyond the position table raises no error on a GPU, but every later call of the process fails.
    limit = getattr(settings, "max_position_embeddings", None)
    tried = [0, pad_id + 1] if limit is None or pad_id + 1 + TRIED[0] <= limit else [0]
    first = next((first for first in tried if _runs_packed(backbone, pad_id, first)), None)
    if first is None:
        settings._attn_implementation = original[settings._attn_implementation]
    return first


def _runs_packed(backbone: PreTrainedModel, pad_id: int, first: int) -> bool:
    ids = np.setdiff1d(np.arange(min(12, int(backbone.config.vocab_size))), [pad_id])[: sum(TRIED)]
    tokens = Tokens.of(np.split(ids, TRIED[:1]), pad_id)
    layout = lay_out(tokens, np.arange(2), backbone.device, by_length=False)
    try:
        found_ND = run_packed(backbone, layout, first)
    except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
        logger.info("%s cannot run without padding: %s", type(backbone).__name__, error)
        return False
    texts = torch.split(layout.ids, tokens.lengths.tolist(), 1)
    separate = [backbone(input_ids=ids_1T).last_hidden_state[0] for ids_1T in texts]
    return bool(torch.allclose(found_ND, torch.cat(separate), rtol=TOLERANCE, atol=TOLERANCE))


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
            dropout, scaling = options.get("dropout", 0.0), options.get("scaling")
            return packed_attention((query, key, value), layout, dropout, scaling), None
        plain = _eager_of(module) if name == "eager" else ALL_ATTENTION_FUNCTIONS[name]
        found: tuple[torch.Tensor, torch.Tensor | None] = plain(module, query, key, value, attention_mask, **options)
        return found

    return attend


def _mask(name: str, *arguments: Any, **options: Any) -> torch.Tensor | None:  # noqa: ANN401  transformers' own
    mask: torch.Tensor | None = (
        None if _without_mask.get() else ALL_MASK_ATTENTION_FUNCTIONS[name](*arguments, **options)
    )
    return mask


def _eager_of(module: torch.nn.Module) -> Callable[..., Any]:
    """Return the eager attention of an architecture, which exists only in the file of its modules."""
    files = (vars(sys.modules[kind.__module__]) for kind in type(module).__mro__)
    found: Callable[..., Any] = next(file[_EAGER] for file in files if _EAGER in file)
    return found


for _own, _name in _OVER.items():
    AttentionInterface.register(_name, _attention_over(_own))
    AttentionMaskInterface.register(_name, partial(_mask, _own))
