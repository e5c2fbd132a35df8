"""Run an encoder over texts.

Shapes: n texts, D width.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import torch

from models.encoder.arithmetic import arithmetic
from models.encoder.tokens import Tokens, budget_batches, tokenise
from models.errors import NoEmbeddingError
from models.transfer import Download, one_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.encoder.network import Encoder
    from models.progress import OnProgress

CPU_TOKENS = 1024  # padded tokens a forward pass; measured best on CPU (1,024 before 4,096)
GPU_TOKENS = 65_536
REPORT_EVERY = 50  # forward passes between two progress reports

_switching = threading.Lock()
_evaluating: WeakKeyDictionary[Encoder, tuple[int, bool]] = WeakKeyDictionary()  # calls at work, and the mode before


def encode(
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    batch_tokens: int | None = None,
    device: str | torch.device | None = None,
    bf16: bool = False,
    on_progress: OnProgress | None = None,
) -> NDArray[np.float32]:
    """Embed texts: (n, D) float32, row i belongs to text i. Any number of threads may share an encoder.

    Args:
        encoder: Put into evaluation mode and onto `device` for the call; its mode is restored.
        tokenizer: The encoder's own.
        texts: Any number of texts; repeated texts are embedded as often as they occur.
        batch_tokens: Padded tokens a forward pass; None for what suits the device.
        device: Where to compute; None for where the encoder is.
        bf16: Forward arithmetic in bf16 (about twice as fast or more, drifts in the third digit).
        on_progress: Called as (sentences done, sentences in all, detail).

    Raises:
        NoEmbeddingError: A text gives no token, or its vector is not finite.
    """
    tokens = tokenise(tokenizer, texts, encoder.config.length)
    return encode_tokens(encoder, tokens, batch_tokens=batch_tokens, device=device, bf16=bf16, on_progress=on_progress)


def encode_tokens(
    encoder: Encoder,
    tokens: Tokens,
    *,
    batch_tokens: int | None = None,
    device: str | torch.device | None = None,
    bf16: bool = False,
    on_progress: OnProgress | None = None,
) -> NDArray[np.float32]:
    """As `encode`, for texts that are tokens already."""
    vectors = np.zeros((len(tokens), encoder.width), dtype=np.float32)
    done = 0
    if device is not None:
        encoder.to(device)
    budget = batch_tokens or tokens_a_pass(encoder.device)
    with evaluating(encoder), torch.inference_mode(), arithmetic(encoder.device, bf16=bf16):
        passes = (
            (rows, Download(encoder.embed(tokens, rows, budget))) for rows in budget_batches(tokens.lengths, budget)
        )
        for number, (rows, embedded) in enumerate(one_ahead(passes), start=1):
            vectors[rows] = embedded.numpy()
            done += len(rows)
            if on_progress is not None and (number % REPORT_EVERY == 0 or done == len(tokens)):
                on_progress(done, len(tokens), f"longest row {int(tokens.lengths[rows].max())} tokens")
    _check_finite(vectors)
    return vectors


def tokens_a_pass(device: torch.device) -> int:
    """Padded tokens that a forward pass without gradients takes on a device."""
    return CPU_TOKENS if device.type == "cpu" else GPU_TOKENS


@contextlib.contextmanager
def evaluating(encoder: Encoder) -> Iterator[None]:
    """Put an encoder into evaluation mode for the block; of several threads' blocks, until the last one ends."""
    with _switching:
        others, was_training = _evaluating.get(encoder, (0, encoder.training))
        _evaluating[encoder] = others + 1, was_training
        encoder.eval()
    try:
        yield
    finally:
        with _switching:
            calls, was_training = _evaluating.pop(encoder)
            if calls > 1:
                _evaluating[encoder] = calls - 1, was_training
            else:
                encoder.train(was_training)


def _check_finite(vectors: NDArray[np.float32]) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise NoEmbeddingError(
            int(bad[0]),
            f"has an embedding that is not finite ({len(bad)} of {len(vectors)} texts); the weights are broken, or "
            "bf16 overflowed: look at the training log, or encode in fp32",
        )
