"""Reduce the dimensions of an encoder's vectors: keep the first ones, or rotate onto principal axes first.

An encoder trained with nested dimensions (`training.objective.dims`) has most information in its first dimensions.
Otherwise the order of dimensions is arbitrary, so vectors are first rotated onto principal axes (PCA without removing
the mean), which does not change cosines.

Shapes: N vectors, D their width, K the reduced width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from models.encoder.heads import Normalize, dense_of
from models.errors import EncoderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.encoder.heads import Head
    from models.encoder.network import Encoder


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
