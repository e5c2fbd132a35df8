"""Fewer dimensions of an encoder's vectors: its own first ones, or those in which its vectors differ most.

An encoder that was trained with nested dimensions (`training.objective.dims`) keeps most of what it knows in the first.
Of any other, the first K of its dimensions are any K; there, vectors are turned first, by a rotation that changes no
cosine, so that their dimensions stand in the order of what they hold (PCA, with the mean left in).

Shapes: N vectors, D their width, K the width that is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from models.encoder.heads import Normalize, dense_of
from models.errors import EncoderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.encoder.network import Encoder


def principal_axes(vectors_ND: NDArray[np.floating]) -> NDArray[np.float64]:
    """Orthonormal columns (D, D), that along which the vectors are longest first; equal vectors give equal signs."""
    wide_ND = vectors_ND.astype(np.float64)
    _, axes_DD = np.linalg.eigh(wide_ND.T @ wide_ND)
    axes_DD = axes_DD[:, ::-1]
    largest_D = axes_DD[np.abs(axes_DD).argmax(axis=0), np.arange(len(axes_DD))]
    signed_DD: NDArray[np.float64] = axes_DD * np.sign(largest_D)
    return signed_DD


def first_axes(width: int) -> NDArray[np.float64]:
    """The dimensions as they are, (D, D)."""
    return np.eye(width)


def fold(encoder: Encoder, weight_KD: torch.Tensor, mean_D: torch.Tensor) -> Encoder:
    """The encoder followed by x ↦ W (x − μ), scaled to length 1: two Dense modules of sentence-transformers, in fp32.

    W may divide by small deviations. So μ is taken out in a module of its own: in W x − W μ, which one module would
    compute, both terms are many times as long as their difference, and so is their rounding.

    Raises:
        EncoderError: The map takes vectors of another width.
    """
    single_D = mean_D.float()
    centred = dense_of(torch.eye(len(mean_D)), -single_D)
    # What μ lost as fp32 is made up for behind W, where it is small beside the vectors.
    mapped = dense_of(weight_KD, weight_KD @ (single_D.double() - mean_D))
    # What scaled the vectors before stays, as a head; it is no longer the last.
    config = encoder.config.model_copy(update={"normalize": True})
    heads = [*encoder.sentence_heads, centred, mapped, Normalize()]
    return encoder.with_heads(config, encoder.token_heads, heads).eval()


def check_fewer(encoder: Encoder, kept: int) -> None:
    """Refuse to keep more dimensions than an encoder has.

    Raises:
        EncoderError: There are not more than are to be kept.
    """
    if kept >= encoder.width:
        raise EncoderError(
            f"{encoder.config.model}: vectors of width {encoder.width}, {kept} dimensions are asked for, expected "
            "fewer; lower --dims"
        )


def shortened(encoder: Encoder, axes_DD: NDArray[np.float64], kept: int) -> Encoder:
    """The encoder followed by the first `kept` of some axes and by scaling to length 1.

    Raises:
        EncoderError: As `check_fewer`.
    """
    check_fewer(encoder, kept)
    weight_KD = torch.from_numpy(np.ascontiguousarray(axes_DD[:, :kept].T))
    heads = [*encoder.sentence_heads, dense_of(weight_KD, torch.zeros(kept)), Normalize()]
    config = encoder.config.model_copy(update={"normalize": True})
    return encoder.with_heads(config, encoder.token_heads, heads).eval()
