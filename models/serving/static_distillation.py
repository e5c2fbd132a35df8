"""Distil an encoder into a static token table, where a sentence's vector is the mean of its tokens' rows.

A row is initialised with the encoder's vector of the token alone, centred and weighted by the token's rarity
(a / (a + p): Arora, Liang and Ma, 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", equation 3).
Then ridge regression fits the rows, so that their means over a text's sentences approximate the encoder's vectors. The
ridge pulls rows to their initial values; rows of tokens that are not in the text do not change.

Shapes: N sentences, V tokens of the vocabulary, D width of the encoder, K width of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from scipy import sparse

from models.encoder.config import EncoderConfig
from models.encoder.network import Encoder
from models.encoder.sentence_encoder import SentenceEncoder, encode_tokens, tokenise
from models.encoder.serialization.load import surrounding_ids
from models.encoder.static import StaticTable, WhitespaceTokenizer, static_tokenizer
from models.encoder.unpadded import Tokens
from models.errors import EncoderError
from models.evaluation.metrics import unit
from models.serving.dimension_reduction import principal_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    Matrix = NDArray[np.float64]

RARE: Final = 1e-3  # a of the weights (Arora et al.: 1e-3 to 1e-4)
RIDGE: Final = 0.03
STEPS: Final = 60  # of conjugate gradients; the residual falls below 1e-4 of the initial one on 20,000 sentences


def tabulate(
    encoder: SentenceEncoder, texts: Sequence[str], vectors_ND: NDArray[np.float32], width: int
) -> SentenceEncoder:
    """Make the static table of an encoder, with unit vectors of at most `width` dimensions.

    Args:
        encoder: A transformer with a fast tokenizer, on a CPU.
        texts: Distinct sentences, similar to those of the table's use.
        vectors_ND: The encoder's vectors of these sentences.
        width: Number of principal axes of the encoder's vectors to project on.

    Raises:
        EncoderError: As `check_transformer`.
    """
    tokenizer = check_transformer(encoder)
    plain = static_tokenizer(tokenizer.backend_tokenizer)
    sentences_ND = unit(vectors_ND)
    axes_DK = principal_axes(sentences_ND)[:, :width]
    counts_NV = _counts(tokenise(plain, texts, encoder.config.length), len(tokenizer))
    start_VK = _start(unit(_alone(encoder, len(tokenizer))) @ axes_DK, counts_NV)
    table_VK = _fitted(start_VK, counts_NV, sentences_ND @ axes_DK)
    config = EncoderConfig(model=encoder.config.model, normalize=True, max_length=encoder.config.max_length)
    return SentenceEncoder(Encoder(StaticTable(torch.from_numpy(table_VK.astype(np.float32))), config).eval(), plain)


def check_transformer(encoder: SentenceEncoder) -> PreTrainedTokenizerBase:
    """Return the fast tokenizer of a transformer, and refuse other encoders.

    Raises:
        EncoderError: The encoder is a table already, or its tokenizer is not a fast one.
    """
    backbone, tokenizer = encoder.network.backbone, encoder.tokenizer
    if isinstance(backbone, StaticTable) or isinstance(tokenizer, WhitespaceTokenizer) or not tokenizer.is_fast:
        raise EncoderError(
            f"{encoder.config.model}: {type(backbone).__name__} with {type(tokenizer).__name__}, expected a "
            "transformer with a fast tokenizer. Remove --static."
        )
    return tokenizer


def _alone(encoder: SentenceEncoder, vocabulary: int) -> NDArray[np.float32]:
    """Return the encoder's vector (V, D) of each token alone, with the prompt and special tokens around it."""
    before, after = surrounding_ids(encoder.tokenizer, encoder.prompt)
    ids = [[*before, token, *after] for token in range(vocabulary)]
    return encode_tokens(encoder.network, Tokens.of(ids, int(encoder.tokenizer.pad_token_id)))


def _counts(tokens: Tokens, vocabulary: int) -> sparse.csr_matrix:
    """Return each token's share of each sentence, (N, V); rows sum to 1."""
    shares = np.repeat(1.0 / tokens.lengths, tokens.lengths)
    return sparse.csr_matrix((shares, tokens.ids, tokens.offsets), shape=(len(tokens), vocabulary))


def _start(tokens_VK: Matrix, counts_NV: sparse.csr_matrix) -> Matrix:
    share_V = np.asarray(counts_NV.mean(axis=0)).ravel()
    centred_VK = tokens_VK - share_V @ tokens_VK
    return (RARE / (RARE + share_V))[:, None] * centred_VK


def _fitted(start_VK: Matrix, counts_NV: sparse.csr_matrix, target_NK: Matrix) -> Matrix:
    """Return argmin over E of ‖X·E − Y‖² + λ‖E − E₀‖², by conjugate gradients in all dimensions at once.

    E₀ is the initial table, scaled to the size of Y and shifted to its mean.
    """
    mean_K = target_NK.mean(axis=0)
    initial_NK = counts_NV @ start_VK
    scale = float((initial_NK * (target_NK - mean_K)).sum() / max((initial_NK**2).sum(), np.finfo(np.float64).tiny))
    table_VK: Matrix = max(scale, 0.0) * start_VK + mean_K
    residual_VK = counts_NV.T @ (target_NK - counts_NV @ table_VK)
    direction_VK, size_K = residual_VK.copy(), (residual_VK**2).sum(axis=0)
    for _ in range(STEPS):
        product_VK = counts_NV.T @ (counts_NV @ direction_VK) + RIDGE * direction_VK
        step_K = size_K / np.maximum((direction_VK * product_VK).sum(axis=0), np.finfo(np.float64).tiny)
        table_VK += step_K * direction_VK
        residual_VK -= step_K * product_VK
        before_K, size_K = size_K, (residual_VK**2).sum(axis=0)
        direction_VK = residual_VK + size_K / np.maximum(before_K, np.finfo(np.float64).tiny) * direction_VK
    return table_VK
