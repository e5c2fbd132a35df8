"""Whitening (Su et al., 2021, "BERT-whitening").

Shapes: N vectors, D their width, K their width after whitening.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch.nn import functional

from bsl.models.errors import EvaluationError
from bsl.models.transforms.config import Transform

if TYPE_CHECKING:
    from bsl.models.training.snapshots import Execution
    from bsl.models.transforms.config import WhiteningConfig

_CHUNK: Final = 65_536  # vectors in float64 at a time


class Whitening(Transform):
    """(x − μ) U Λ^(−1/2), scaled to length 1, where U Λ Uᵀ is the covariance of the corpus's vectors (Su et al., 2021).

    With `dimensions` K, only the columns of the K largest eigenvalues are used. The released code also scales to length
    1.
    """

    @classmethod
    def fit(
        cls,
        vectors_ND: torch.Tensor,
        config: WhiteningConfig,
        execution: Execution,  # noqa: ARG003 - takes seconds
    ) -> Whitening:
        """Fit mean and eigenvectors, in float64; the covariance divides by N − 1.

        Raises:
            EvaluationError: `dimensions` is larger than the vectors' width, or than the number of directions in which
                they vary.
        """
        width = vectors_ND.shape[1]
        dimensions = config.dimensions or width
        if dimensions > width:
            raise EvaluationError(
                f"transform.dimensions is {dimensions}, expected at most the width of the vectors, {width}. Lower it."
            )
        mean_D, covariance_DD = _moments(vectors_ND)
        values_D, vectors_DD = torch.linalg.eigh(covariance_DD)
        values_D, vectors_DD = values_D.flip(0), vectors_DD.flip(1)  # the largest first
        # Variances below the squared rounding error of the vectors do not count as directions.
        least = float(values_D[0]) * (width * torch.finfo(torch.float32).eps) ** 2
        rank = int((values_D > max(least, 0.0)).sum())
        if rank < dimensions:
            raise EvaluationError(
                f"cannot whiten to {dimensions} dimensions: {len(vectors_ND):,} vectors of width {width} vary in only "
                f"{rank} directions. Use a larger corpus, or lower transform.dimensions."
            )
        return cls(config, {"mean": mean_D, "kernel": vectors_DD[:, :dimensions] * values_D[:dimensions].rsqrt()})

    def apply(self, vectors_ND: torch.Tensor) -> torch.Tensor:
        """Return whitened vectors of length 1: (N, K), float32."""
        return torch.cat(
            [functional.normalize(self.whitened(part)).float() for part in torch.split(vectors_ND, _CHUNK)]
        )

    def whitened(self, vectors_ND: torch.Tensor) -> torch.Tensor:
        """Return vectors before scaling to length 1: (N, K), float64, with covariance 1 if they are the fitted ones."""
        return (vectors_ND.double() - self.tensors["mean"]) @ self.tensors["kernel"]

    def linear(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W = (U Λ^(−1/2))ᵀ and μ."""
        return self.tensors["kernel"].T, self.tensors["mean"]


def _moments(vectors_ND: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean (D,) and covariance (D, D), float64."""
    mean_D = torch.stack([part.double().sum(dim=0) for part in torch.split(vectors_ND, _CHUNK)]).sum(dim=0) / len(
        vectors_ND
    )
    centred = (part.double() - mean_D for part in torch.split(vectors_ND, _CHUNK))
    total_DD = torch.stack([part_ND.T @ part_ND for part_ND in centred]).sum(dim=0)
    return mean_D, total_DD / max(len(vectors_ND) - 1, 1)
