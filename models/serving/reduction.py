"""Smaller encoders: fewer dimensions, or a static token table, whose vectors are means of the tokens' rows.

An encoder trained with nested dimensions (`training.objective.dims`) has most information in its first dimensions.
Otherwise the order of dimensions is arbitrary, so vectors are first rotated onto principal axes (PCA without removing
the mean), which does not change cosines.

A row is initialised with the encoder's vector of the token alone, centred and weighted by the token's rarity
(a / (a + p): Arora, Liang and Ma, 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", equation 3).
Then ridge regression fits the rows, so that their means over a text's sentences approximate the encoder's vectors. The
ridge pulls rows to their initial values; rows of tokens that are not in the text do not change.

Shapes: N vectors or sentences, D width of the encoder, K reduced width, V tokens of the vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from scipy import sparse

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.heads import Normalize, dense_of
from bsl.models.encoder.layouts import Tokens
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.prompts import surrounding_ids
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.static import StaticTable, WhitespaceTokenizer, static_tokenizer
from bsl.models.errors import EncoderError
from bsl.models.runtime.rows import unit_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tokenizers
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from bsl.models.encoder.heads import Head

    Matrix = NDArray[np.float64]

RARE: Final = 1e-3  # a of the weights (Arora et al.: 1e-3 to 1e-4)
RIDGE: Final = 0.03
STEPS: Final = 60  # of conjugate gradients; the residual falls below 1e-4 of the initial one on 20,000 sentences


def principal_axes(vectors_ND: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the principal axes as orthonormal columns (D, D), the largest first; their signs are deterministic."""
    wide_ND = vectors_ND.astype(np.float64)
    _, axes_DD = np.linalg.eigh(wide_ND.T @ wide_ND)
    axes_DD = axes_DD[:, ::-1]
    largest_D = axes_DD[np.abs(axes_DD).argmax(axis=0), np.arange(len(axes_DD))]
    signed_DD: NDArray[np.float64] = axes_DD * np.sign(largest_D)
    return signed_DD


def fold(encoder: Encoder, weight_KD: torch.Tensor, mean_D: torch.Tensor) -> Encoder:
    """Append x ↦ W (x − μ), scaled to length 1, to an encoder: two Dense modules of sentence-transformers, in fp32.

    W may divide by small deviations, so μ is subtracted in a separate module. One module would compute W x − W μ, where
    both terms, and thus their rounding errors, are many times larger than the difference.

    Raises:
        EncoderError: The map needs vectors of another width.
    """
    single_D = mean_D.float()
    centred = dense_of(torch.eye(len(mean_D)), -single_D)
    # The bias of W corrects the rounding of μ to fp32, because it is small relative to the vectors there.
    mapped = dense_of(weight_KD, weight_KD @ (single_D.double() - mean_D))
    return _appended(encoder, centred, mapped)


def check_fewer(encoder: Encoder, dimensions: int) -> None:
    """Refuse to keep as many dimensions as an encoder has, or more.

    Raises:
        EncoderError: `dimensions` is not below the encoder's width.
    """
    if dimensions >= encoder.width:
        raise EncoderError(
            f"{encoder.config.model}: --dims is {dimensions}, expected less than the encoder's width {encoder.width}. "
            "Lower --dims."
        )


def shortened(encoder: Encoder, axes_DD: NDArray[np.float64], dimensions: int) -> Encoder:
    """Append the projection on the first `dimensions` axes, and scaling to length 1, to an encoder.

    Raises:
        EncoderError: As `check_fewer`.
    """
    check_fewer(encoder, dimensions)
    weight_KD = torch.from_numpy(np.ascontiguousarray(axes_DD[:, :dimensions].T))
    return _appended(encoder, dense_of(weight_KD, torch.zeros(dimensions)))


def _appended(encoder: Encoder, *heads: Head) -> Encoder:
    # An earlier scaling to length 1 stays, as a head that is no longer the last.
    config = encoder.config.model_copy(update={"normalize": True})
    return encoder.with_heads(config, encoder.token_heads, [*encoder.sentence_heads, *heads, Normalize()]).eval()


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
    config = EncoderConfig(model=encoder.config.model, normalize=True, max_length=encoder.config.max_length)
    return fitted_table(tokenizer.backend_tokenizer, _alone(encoder, len(tokenizer)), texts, vectors_ND, config, width)


def fitted_table(
    tokenizer: tokenizers.Tokenizer,
    tokens_VD: NDArray[np.float32],
    texts: Sequence[str],
    vectors_ND: NDArray[np.float32],
    config: EncoderConfig,
    width: int,
) -> SentenceEncoder:
    """Fit a static table to vectors of sentences; it may have another vocabulary than the encoder of the vectors.

    Args:
        tokenizer: The table's vocabulary; its special tokens are not used.
        tokens_VD: The encoder's vector of each of its tokens alone.
        texts: As for `tabulate`.
        vectors_ND: As for `tabulate`.
        config: The table's configuration.
        width: As for `tabulate`.
    """
    plain = static_tokenizer(tokenizer)
    sentences_ND = unit_vectors(vectors_ND.astype(np.float64))
    axes_DK = principal_axes(sentences_ND)[:, :width]
    counts_NV = _counts(token_ids(plain, texts, config.length), len(tokens_VD))
    start_VK = _start(unit_vectors(tokens_VD.astype(np.float64)) @ axes_DK, counts_NV)
    table_VK = _fitted(start_VK, counts_NV, sentences_ND @ axes_DK)
    return SentenceEncoder(Encoder(StaticTable(torch.from_numpy(table_VK.astype(np.float32))), config).eval(), plain)


def check_transformer(encoder: SentenceEncoder) -> PreTrainedTokenizerBase:
    """Return the fast tokenizer of a transformer, and refuse other encoders.

    Raises:
        EncoderError: The encoder is a table already, or its tokenizer is not a fast one.
    """
    backbone, tokenizer = encoder.network.backbone, encoder.own_tokenizer
    if isinstance(backbone, StaticTable) or isinstance(tokenizer, WhitespaceTokenizer) or not tokenizer.is_fast:
        raise EncoderError(
            f"{encoder.config.model}: {type(backbone).__name__} with {type(tokenizer).__name__}, expected a "
            "transformer with a fast tokenizer. Remove --static."
        )
    return tokenizer


def _alone(encoder: SentenceEncoder, vocabulary: int) -> NDArray[np.float32]:
    """Return the encoder's vector (V, D) of each token alone, with the prompt and special tokens around it."""
    before, after = surrounding_ids(encoder.own_tokenizer, encoder.prompt)
    ids = [[*before, token, *after] for token in range(vocabulary)]
    return encoder.network.encode(Tokens.of(ids, int(encoder.own_tokenizer.pad_token_id)))


def _counts(tokens: Tokens, vocabulary: int) -> sparse.csr_matrix:
    """Return each token's share of each sentence, (N, V); rows sum to 1, or to 0 without tokens."""
    shares = np.repeat(1.0 / tokens.lengths.clip(min=1), tokens.lengths)
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
