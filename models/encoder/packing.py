"""Find out how a transformer runs packed, by a trial: two short sentences must give the same vectors as each alone.

The trial decides, not a list of architectures: RoBERTa-like models count positions from the padding id + 1, others from
0; in decoders tokens attend only to earlier ones. Attention by distance first needs relative_positions.py.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from bsl.models.encoder.layouts import Tokens, lay_out
from bsl.models.encoder.relative_positions import read_layouts
from bsl.models.encoder.unpadded import PACKED_ATTENTION, attention_of, run_packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

TRIAL_LENGTHS: Final = (7, 4)  # tokens of the trial's two sentences
TOLERANCE: Final = 1e-3  # wrong positions or leaking attention differ by more, rounding by far less
_trying = threading.Lock()  # a trial changes a model's mode and attention, and other threads may start one


@dataclass(frozen=True)
class Packing:
    """How a transformer runs packed.

    Attributes:
        first: Position id of a sentence's first token.
        causal: Whether a token attends only to itself and earlier tokens.
        longest: Tokens of the longest sentence, beyond which a sliding window would separate its ends; None for any.
    """

    first: int
    causal: bool
    longest: int | None

    def fits(self, tokens: int) -> bool:
        """Return whether a sentence of so many tokens can run packed."""
        return self.longest is None or tokens <= self.longest


@torch.no_grad()
def packing_of(backbone: PreTrainedModel, pad_id: int) -> Packing | None:
    """Switch a model to attention that accepts layouts, and return how it runs packed.

    Modules with attention by distance stay switched (`read_layouts`), which changes nothing without a layout.

    Args:
        backbone: The model; its mode is restored, and its attention if it cannot run packed.
        pad_id: Id of the padding token.

    Returns:
        None if it cannot: its attention is not replaceable, or attends neither to the whole sentence nor to all
        earlier tokens, or a pass is limited to the number of positions.
    """
    with _trying:
        if not (read_layouts(backbone) or getattr(backbone, "_supports_attention_backend", False)):
            return None
        was_training = backbone.training
        backbone.train(False)
        try:
            # In fp32, whatever the caller uses: bf16 rounds by more than the tolerance.
            with torch.autocast(backbone.device.type, enabled=False):
                return _try(backbone, pad_id)
        finally:
            backbone.train(was_training)


def _try(backbone: PreTrainedModel, pad_id: int) -> Packing | None:
    settings: Any = backbone.config
    original = {name: attention for attention, name in PACKED_ATTENTION.items()}
    own = attention_of(backbone)
    if _limits_pass(backbone):
        return None
    packed = own if own in original else PACKED_ATTENTION.get(str(own))
    if packed is None:
        return None
    settings._attn_implementation = packed
    found = next((packing for packing in _candidates(settings, pad_id) if _runs(backbone, pad_id, packing)), None)
    if found is None:
        settings._attn_implementation = original[packed]
    return found


def _limits_pass(backbone: PreTrainedModel) -> bool:
    """Return whether a pass may have no more tokens than there are positions, as in CLIP, whatever their positions."""
    embeddings, limit = getattr(backbone, "embeddings", None), getattr(backbone.config, "max_position_embeddings", None)
    if embeddings is None or not isinstance(limit, int):
        return False
    ids_1N = torch.zeros(1, limit + 1, dtype=torch.int64, device=backbone.device)
    try:
        embeddings(input_ids=ids_1N, position_ids=ids_1N)
    except TypeError:  # these embeddings read no positions
        return False
    except (ValueError, IndexError, RuntimeError):
        return True
    return False


def _candidates(settings: Any, pad_id: int) -> Iterator[Packing]:  # noqa: ANN401  of any architecture
    limited = {*(getattr(settings, "layer_types", None) or ["unknown"])} != {"full_attention"}
    names = ("sliding_window", "attention_chunk_size") if limited else ()
    window = min(filter(None, (getattr(settings, name, None) for name in names)), default=None)
    if window and window < max(TRIAL_LENGTHS):
        return
    yield Packing(0, False, window)
    # An index beyond the position table raises no error on a GPU, but every later call of the process fails.
    limit = getattr(settings, "max_position_embeddings", None)
    if limit is None or pad_id + 1 + max(TRIAL_LENGTHS) <= limit:
        yield Packing(pad_id + 1, False, window)
    yield Packing(0, True, window)


def _runs(backbone: PreTrainedModel, pad_id: int, packing: Packing) -> bool:
    ids = np.setdiff1d(np.arange(min(12, int(backbone.config.vocab_size))), [pad_id])[: sum(TRIAL_LENGTHS)]
    tokens = Tokens.of(np.split(ids, TRIAL_LENGTHS[:1]), pad_id)
    layout = lay_out(tokens, np.arange(2), backbone.device, by_length=False, causal=packing.causal)
    try:
        found_ND = run_packed(backbone, layout, packing.first)
    except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
        logger.info("%s cannot run without padding: %s", type(backbone).__name__, error)
        return False
    texts = torch.split(layout.ids, tokens.lengths.tolist(), 1)
    separate = [backbone(input_ids=ids_1T).last_hidden_state[0] for ids_1T in texts]
    return bool(torch.allclose(found_ND, torch.cat(separate), rtol=TOLERANCE, atol=TOLERANCE))
