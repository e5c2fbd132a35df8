"""An encoder that remembers the vectors of texts: probes of one text ask for the same sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.encoder.encode import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.encoder.network import Encoder


class Remembered:
    """Texts to vectors (n, D) float32, each different text embedded once."""

    def __init__(self, encoder: Encoder, tokenizer: PreTrainedTokenizerBase, *, device: str) -> None:
        self._encoder, self._tokenizer, self._device = encoder, tokenizer, device
        self._known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `models.encoder.encode.encode`."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            vectors = encode(self._encoder, self._tokenizer, new, device=self._device)
            self._known.update(zip(new, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])
