"""TSDAE (Wang, Reimers and Gurevych, 2021): reconstruct a sentence from the vector of a damaged copy.

    damaged sentence ─▶ encoder, pooling ─▶ vector ─▶ ┐
    whole sentence, up to each token ────────────────▶ decoder: the encoder's own layers ─▶ the next token

The first view is the damaged sentence (view `deleted` of models/views/deletion.py), the second the whole one.

Shapes: B sentences, N tokens of all, D width, S width of sentence vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.encoder.unpadded import Tokens
from models.errors import TrainingError
from models.objectives.language_modeling.decoder import Decoder, decoder_position
from models.objectives.language_modeling.head import embeddings_of, vocabulary_head
from models.objectives.objective import Objective
from models.runtime.device import gather_shares, own_share, uploaded

if TYPE_CHECKING:
    import torch

    from models.encoder.network import Encoder
    from models.encoder.static import Tokenizer
    from models.objectives.config import TSDAEConfig
    from models.objectives.objective import Batch


class TSDAE(Objective):
    """Mean of −log p(token | earlier tokens, the damaged sentence's vector) over the tokens of the whole sentence.

    Source: Wang, Reimers and Gurevych, Findings of EMNLP 2021, equation 1. Encoder and decoder share their weights
    except those of `decoder` and `head`.

    Example:
        >>> objective = TSDAE(encoder, TSDAEConfig())
        >>> objective.read_vocabulary(tokenizer)
        >>> objective(batch, batch_tokens=512).item() > 0  # (B, S) vectors, (N, D) states → a scalar
        True
    """

    data_parallel = ("online", "decoder", "head")

    def __init__(self, online: Encoder, config: TSDAEConfig) -> None:
        """Load the head saved with the encoder, or make a new one, and make the attentions to the vector.

        Raises:
            TrainingError: The encoder's architecture has no decoder form.
        """
        super().__init__(online, config)
        self.decoder = Decoder(online.transformer, online.width)
        self.head = vocabulary_head(online.transformer)
        self._first: int | None = None

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Set the position of a sentence's first token, which depends on the padding token in some architectures.

        Raises:
            TrainingError: The encoder does not run packed.
        """
        self._first = decoder_position(self.online.transformer, int(tokenizer.pad_token_id), self.online.config.length)

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """Return the mean cross-entropy (nats) of the next tokens of the second views, a scalar (equation 1)."""
        assert self._first is not None  # set by `read_vocabulary`
        rows = own_share(np.arange(len(batch)))
        vectors_BS = self.online.embed(batch.tokens, batch.view_1[rows], batch_tokens)
        read, next_N = _shifted(batch.tokens.take(batch.view_2[rows]))
        states_ND, indices_N = self.decoder(self.online.transformer, read, vectors_BS, self._first)
        labels_N = uploaded(next_N[indices_N].astype(np.int64), states_ND.device)
        loss = self.head.loss(states_ND, embeddings_of(self.online.transformer), labels_N)
        count = int((batch.tokens.lengths_of(batch.view_2) - 1).sum())
        return gather_shares(loss[None]).sum() / count


def _shifted(tokens: Tokens) -> tuple[Tokens, np.ndarray]:
    """Return the sentences without their last tokens, and the next token of each remaining token, (N,)."""
    if int(tokens.lengths.min()) < 2:
        raise TrainingError(
            "objective tsdae: a sentence has only one token, expected at least [CLS] and [SEP]. Choose an encoder "
            "whose tokenizer marks the ends of sentences."
        )
    last = np.zeros(len(tokens.ids), dtype=np.bool_)
    last[tokens.offsets[1:] - 1] = True
    offsets = tokens.offsets - np.arange(len(tokens.offsets))
    return Tokens(tokens.ids[~last], offsets, tokens.pad_id), np.roll(tokens.ids, -1)[~last]
