"""Test whether an architecture runs on token ids, and whether padding changes its vectors.

Convolutions, Fourier transforms and approximate attention read padding as if it were text. Such a model gets sentences
of equal length together, so that a text's vector does not depend on the other texts of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from bsl.models.encoder.layouts import Tokens
from bsl.models.errors import EncoderError
from bsl.storage.filesystem.os_errors import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from transformers import PreTrainedModel

READ_PADDING: Final = frozenset(
    {"mobilebert", "convbert", "fnet", "nystromformer", "yoso", "mra", "big_bird", "funnel", "reformer"}
)
"""Architectures that read padding for some lengths or weights; some of them pass the test of two short sentences."""
PADDING_TEST_LENGTHS: Final = (7, 4)  # tokens of the test's two sentences
TOLERANCE: Final = 1e-4  # of the vectors' largest value: padding that is read changes far more, rounding far less


def reads_padding(backbone: PreTrainedModel, pad_id: int, longest: int, *, left: bool) -> bool:
    """Return whether padding changes a transformer's vectors.

    Args:
        backbone: The transformer, in evaluation mode.
        pad_id: Id of the padding token.
        longest: Maximal length of a sentence in tokens.
        left: Whether the tokenizer pads on the left. Sentences are padded on the right all the same; other libraries
            follow the tokenizer.

    Raises:
        EncoderError: The architecture does not run on token ids alone; a sentence's vectors depend on other sentences
            of the same length; or padding on the left moves its positions.
    """
    words = np.setdiff1d(np.arange(min(12, int(backbone.config.vocab_size))), [pad_id])
    if len(words) == 0:
        return True
    ids = np.resize(words, sum(PADDING_TEST_LENGTHS))
    first, second = (row[:longest] for row in np.split(ids, PADDING_TEST_LENGTHS[:1]))
    try:
        short, alone = _vectors(backbone, [second], pad_id), _vectors(backbone, [first], pad_id)
        if backbone.config.model_type in READ_PADDING:
            return True
        padded = _vectors(backbone, [first, second], pad_id)[1:, : len(second)]
        beside = _vectors(backbone, [first, first[::-1].copy()], pad_id)[:1]
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise EncoderError(
            f"the architecture {backbone.config.model_type} does not run on token ids alone "
            f"({first_line(error):.200}). Correct its settings in config.json, or choose a model that encodes texts, "
            "such as one of BERT's family."
        ) from error
    if left and not _close(_vectors(backbone, [first, second], pad_id, left=True)[1:, -len(second) :], short):
        raise EncoderError(
            f"padding_side in tokenizer_config.json is left, which moves the positions of the architecture "
            f"{backbone.config.model_type}. Set it to right."
        )
    if not _close(beside, alone):
        raise EncoderError(
            f"the architecture {backbone.config.model_type} gives a text another vector when other texts are in the "
            "same call. Choose another model."
        )
    return not _close(padded, short)


@torch.no_grad()
def _vectors(
    backbone: PreTrainedModel, rows: list[NDArray[np.int64]], pad_id: int, *, left: bool = False
) -> torch.Tensor:
    tokens = Tokens.of(rows, pad_id)
    ids_BT, mask_BT = (x_BT.to(backbone.device) for x_BT in tokens.padded(np.arange(len(rows))))
    if left:
        shifts = [ids_BT.shape[1] - len(row) for row in rows]
        ids_BT, mask_BT = (
            torch.stack([row.roll(shift) for row, shift in zip(x_BT, shifts, strict=True)])
            for x_BT in (ids_BT, mask_BT)
        )
    with torch.autocast(backbone.device.type, enabled=False):  # bf16 rounds by more than the tolerance
        found: torch.Tensor = backbone(input_ids=ids_BT, attention_mask=mask_BT, return_dict=True).last_hidden_state
    return found


def _close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    scale = max(float(expected.abs().max()), float(torch.finfo(torch.float32).tiny))
    return found.shape == expected.shape and float((found - expected).abs().max()) <= TOLERANCE * scale


def batches_of_equal_length(lengths: NDArray[np.int64], most: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each batch: equal lengths, at most `most` tokens, but at least one row."""
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        size = max(1, most // int(length))
        yield from (rows[start : start + size] for start in range(0, len(rows), size))
