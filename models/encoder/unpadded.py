"""Run a transformer over sentences laid end to end, so that no arithmetic is spent on padding.

All that works token by token (embeddings, linears, norms: most of the arithmetic) sees one row of N tokens; only
attention looks at sentences, group by group. On a CPU a group holds sentences of one length and needs neither padding
nor mask; a GPU gets one padded group, because many small kernels cost it more than padding inside attention.

transformers lets a model's attention be replaced by name and hands keyword arguments through to it (`attention.py`).
Architectures that do not play along are found out by `first_position`, which tries, and leaves those that do with an
attention that takes layouts. Afterwards any number of threads may run one model, packed or not.

Shapes: B sentences, T tokens of the longest, N tokens of all, D width.
"""

from __future__ import annotations

import itertools
import logging
import threading
from typing import TYPE_CHECKING

import numpy as np
import torch

from models.encoder.attention import Group, Layout, Padding, takes_layouts, takes_none, without_mask
from models.encoder.tokenization import Tokens
from models.runtime.device import uploaded

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

TRIED = (7, 4)  # tokens of the trial's two sentences
TOLERANCE = 1e-3  # of the trial: wrong positions or leaking attention differ by more, rounding by far less

_trying = threading.Lock()  # a trial changes mode and attention of a model that other threads may be about to try


def lay_out(
    tokens: Tokens, rows: NDArray[np.int64], device: torch.device, *, by_length: bool, causal: bool = False
) -> Layout:
    """The layout of some rows on a device; sentences of one length attend together, or all, padded, at once."""
    order = np.argsort(-tokens.lengths_of(rows), kind="stable")
    some = tokens.take(rows[order])
    positions = np.arange(len(some.ids)) - np.repeat(some.offsets[:-1], some.lengths)
    padding = _padding(some.lengths, device)
    return Layout(
        order,
        uploaded(some.ids.astype(np.int64), device)[None],
        uploaded(positions, device)[None],
        uploaded(np.repeat(np.arange(len(some)), some.lengths), device),
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
    places_N = np.flatnonzero(real_BT)
    return Padding(uploaded(real_BT, device), uploaded(places_N, device))


def run_packed(backbone: PreTrainedModel, layout: Layout, first: int, **inputs: torch.Tensor) -> torch.Tensor:
    """Last hidden states (N, D) of the sentences of a layout.

    Args:
        backbone: A model whose `first_position` is not None.
        layout: The sentences, on the model's device.
        first: That position.
        inputs: What else the model is given of each token, (1, N).
    """
    if layout.ids.is_cuda:
        # cuDNN's kernel, torch's first choice in bf16 on Hopper, is planned anew for every shape, and each batch has
        # its own: with it, steps of two layers of BERT-base took eleven times as long in bf16 as in fp32 on an H100.
        # It stays off: the switch is the process's, and another thread may be at work.
        torch.backends.cuda.enable_cudnn_sdp(False)
    with without_mask():
        hidden_1ND: torch.Tensor = backbone(
            input_ids=layout.ids, position_ids=layout.positions + first, layout=layout, **inputs
        ).last_hidden_state
    return hidden_1ND[0]


@torch.no_grad()
def first_position(backbone: PreTrainedModel, pad_id: int, max_length: int) -> int | None:
    """The position id of a sentence's first token, or None if the model cannot run packed.

    Two short sentences run packed must come out as each does alone. RoBERTa and its kin count positions from the
    padding id on, the others from 0; relative position tables, and attention of a model's own, fail both ways.

    Args:
        backbone: Its mode is restored.
        pad_id: The padding token's id.
        max_length: Of the sentences to come; longer than a sliding window they would need that window here.
    """
    window = getattr(backbone.config, "sliding_window", None)
    if not getattr(backbone, "_supports_attention_backend", False) or (window and max_length > window):
        return None
    with _trying:
        was_training = backbone.training
        backbone.train(False)
        try:
            # In full precision whatever the caller trains in: bf16 rounds by more than the tolerance.
            with torch.autocast(backbone.device.type, enabled=False):
                return _found_position(backbone, pad_id)
        finally:
            backbone.train(was_training)


def _found_position(backbone: PreTrainedModel, pad_id: int) -> int | None:
    """The first position at which the model runs packed; one that has none has its own attention afterwards."""
    if not takes_layouts(backbone.config):
        return None
    places = _first_places(backbone, pad_id)
    first = next((first for first in places if _runs_packed(backbone, pad_id, first)), None)
    if first is None:
        takes_none(backbone.config)
    return first


def _first_places(backbone: PreTrainedModel, pad_id: int) -> list[int]:
    """Where sentences may begin: at 0, or behind the padding id where a table of positions is that long.

    A GPU would not raise at a place beyond its table: it would end every later call of the process.
    """
    places = getattr(backbone.config, "max_position_embeddings", None)
    return [0, pad_id + 1] if places is None or pad_id + 1 + TRIED[0] <= places else [0]


def _runs_packed(backbone: PreTrainedModel, pad_id: int, first: int) -> bool:
    some = np.setdiff1d(np.arange(min(12, int(backbone.config.vocab_size))), [pad_id])[: sum(TRIED)]
    lengths = [TRIED[0], len(some) - TRIED[0]]
    tokens = Tokens(some.astype(np.int32), np.array([0, lengths[0], len(some)]), pad_id)
    layout = lay_out(tokens, np.arange(2), backbone.device, by_length=False)
    try:
        found_ND = run_packed(backbone, layout, first)
    except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
        logger.info("%s does not run packed: %s", type(backbone).__name__, error)
        return False
    alone = [backbone(input_ids=ids_1T).last_hidden_state[0] for ids_1T in torch.split(layout.ids, lengths, 1)]
    return bool(torch.allclose(found_ND, torch.cat(alone), rtol=TOLERANCE, atol=TOLERANCE))
