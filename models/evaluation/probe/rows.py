"""The rows of a logistic regression: products with its features, and the curvatures that precondition its solver.

Features are centred, which does not change the weights and decouples the bias from them.

Shapes: N rows, P = D + 1 parameters of a score (features, then the bias), F folds, K scores (1 for two classes), X any
number of columns, k directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from collections.abc import Callable

    Inverse = Callable[[torch.Tensor], torch.Tensor]  # applied to (P, F, K)

DIRECTIONS: Final = 64  # on MR, 18,369 words: 45 s; with 16 directions 87 s, with 256 89 s
PASSES: Final = 4  # of subspace iteration
LARGEST: Final = 6400  # parameters of all scores; their joint curvature is then 330 MB and factored in seconds
DAMPING: Final = 1e-3  # share of the mean curvature to add to the diagonal, since the folds' curvatures differ a little


class DenseRows:
    """Dense features of an encoder with a column of ones, in the precision and on the device to compute in.

    Attributes:
        count: N.
        centre: Mean that is subtracted from the features, (D,).
        parameters: Number of parameters of a score, P.
    """

    def __init__(self, x_ND: torch.Tensor, dtype: torch.dtype) -> None:
        self.count = len(x_ND)
        mean_D = x_ND.double().mean(dim=0)
        self.centre = mean_D.to(dtype)
        self.parameters = len(self.centre) + 1
        x_NP = torch.nn.functional.pad(x_ND.double() - mean_D, (0, 1), value=1.0).to(dtype)
        self._x_NP, self._coarse_NP = x_NP, x_NP.float()

    def times(self, at_PX: torch.Tensor) -> torch.Tensor:
        """Return the scores of weights: (N, X)."""
        return self._x_NP @ at_PX

    def back(self, error_NX: torch.Tensor) -> torch.Tensor:
        """Apply the transpose of `times`, from score errors to gradients of weights: (P, X)."""
        return self._x_NP.T @ error_NX

    def curvature(self, weight_N1: torch.Tensor) -> torch.Tensor:
        """Return XᵀDX for row weights D, (P, P); in float32, at half the cost, since it is only a preconditioner."""
        return (self._coarse_NP.T @ (self._coarse_NP * weight_N1.float())).double()

    def inverse(self, c: float, curvature: torch.Tensor) -> Inverse:
        """Return the inverse of C · curvature + I, without penalty on the bias, as a function on (P, F, K)."""
        factor = _factor(c * curvature)
        if self._x_NP.dtype == torch.float64:
            return lambda slope_PFK: torch.cholesky_solve(slope_PFK.flatten(1), factor).view_as(slope_PFK)
        inverse_PP = torch.cholesky_inverse(factor).to(self._x_NP)  # a product takes half the time of two solutions
        return lambda slope_PFK: (inverse_PP @ slope_PFK.flatten(1)).view_as(slope_PFK)

    def joint_inverse(self, c: float, weight_N: torch.Tensor, chance_NK: torch.Tensor) -> Inverse:
        """As `inverse`, for the joint softmax curvature (K·P, K·P) of K scores, factored in float64.

        If it would be too large, only its blocks on the diagonal are used.
        """
        scores, size = chance_NK.shape[1], self.parameters
        if scores * size > LARGEST:
            return self._inverse_by_score(c, weight_N, chance_NK)
        curvature_KPKP = self._x_NP.new_empty((scores, size, scores, size))
        for one in range(scores):
            for two in range(one + 1):
                curve_N = weight_N * chance_NK[:, one] * (float(one == two) - chance_NK[:, two])
                block_PP = self._x_NP.T @ (self._x_NP * curve_N[:, None])
                curvature_KPKP[one, :, two] = curvature_KPKP[two, :, one] = c * block_PP  # a block is symmetric
        penalised = curvature_KPKP.view(scores * size, scores * size).double()
        # Adding a constant to all biases changes nothing: no curvature in that direction.
        penalised.diagonal().add_(1.0 + DAMPING * float(penalised.diagonal().mean()))
        penalised.diagonal()[size - 1 :: size].sub_(1.0 - 1e-8)
        factor = torch.linalg.cholesky(penalised).to(self._x_NP)

        def apply(slope_PFK: torch.Tensor) -> torch.Tensor:
            solved = torch.cholesky_solve(slope_PFK.permute(2, 0, 1).flatten(0, 1), factor)
            return solved.view(scores, size, -1).permute(1, 2, 0)

        return apply

    def _inverse_by_score(self, c: float, weight_N: torch.Tensor, chance_NK: torch.Tensor) -> Inverse:
        """As `inverse`, for the curvature (P, P) of each of K scores."""
        curve_KN = (c * weight_N[:, None] * chance_NK * (1 - chance_NK)).T.float()
        factor_KPP = torch.stack([_factor(self.curvature(curve_N[:, None])) for curve_N in curve_KN]).to(self._x_NP)

        def apply(slope_PFK: torch.Tensor) -> torch.Tensor:
            return torch.cholesky_solve(slope_PFK.permute(2, 0, 1), factor_KPP).permute(1, 2, 0)

        return apply


def _factor(curvature_PP: torch.Tensor) -> torch.Tensor:
    """Return the Cholesky factor of curvature + I, without penalty on the bias; changes `curvature_PP`."""
    rounding = torch.finfo(torch.float32).eps * float(curvature_PP.trace())  # keeps it positive definite
    curvature_PP.diagonal()[:-1].add_(1.0 + rounding)
    # The curvature of the bias is 0 if the task is solved perfectly.
    curvature_PP.diagonal()[-1].add_(1e-8 + rounding)
    factor_PP: torch.Tensor = torch.linalg.cholesky(curvature_PP)
    return factor_PP


class SparseRows:
    """As `DenseRows`, for sparse features on the CPU.

    For MR's vocabulary XᵀDX would be 2.7 GB. Only the bias and common words have large curvature; along all other
    directions it is close to the penalty's.
    """

    def __init__(self, x_ND: csr_array) -> None:
        self.count = x_ND.shape[0]
        self._x_ND = csr_array(x_ND, dtype=np.float64)
        self._x_DN = csr_array(self._x_ND.T)
        self._mean_D = np.asarray(self._x_ND.mean(axis=0), dtype=np.float64).ravel()
        self.centre = torch.from_numpy(self._mean_D)
        self.parameters = len(self.centre) + 1

    def times(self, at_PX: torch.Tensor) -> torch.Tensor:
        """See `DenseRows.times`."""
        weights_DX, bias_X = np.ascontiguousarray(at_PX[:-1].numpy()), at_PX[-1].numpy()
        return torch.from_numpy(self._x_ND @ weights_DX + (bias_X - self._mean_D @ weights_DX))

    def back(self, error_NX: torch.Tensor) -> torch.Tensor:
        """See `DenseRows.back`."""
        errors_NX = np.ascontiguousarray(error_NX.numpy())
        sums_X = errors_NX.sum(axis=0)
        slope_PX = np.empty((self.parameters, len(sums_X)))
        slope_PX[:-1] = self._x_DN @ errors_NX
        slope_PX[:-1] -= np.outer(self._mean_D, sums_X)
        slope_PX[-1] = sums_X
        return torch.from_numpy(slope_PX)

    def curvature(self, weight_N1: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return directions (P, k) of XᵀDX's largest eigenvalues, and these, ascending, by subspace iteration."""
        generator = torch.Generator().manual_seed(0)
        count = min(DIRECTIONS, self.parameters)
        turned_Pk = torch.randn(self.parameters, count, generator=generator, dtype=torch.float64)
        for _ in range(PASSES):
            directions_Pk = torch.linalg.qr(turned_Pk)[0]
            turned_Pk = self.back(weight_N1 * self.times(directions_Pk))
        steepness_k, mixed_kk = torch.linalg.eigh(directions_Pk.T @ turned_Pk)
        return directions_Pk @ mixed_kk, steepness_k.clamp_min(0.0)

    def inverse(self, c: float, curvature: tuple[torch.Tensor, torch.Tensor]) -> Inverse:
        """See `DenseRows.inverse`: exact along the directions; elsewhere the smallest of their curvatures is used."""
        directions_Pk, steepness_k = curvature
        flat = 1.0 / (1.0 + c * float(steepness_k[0]))
        excess_k1 = (1.0 / (1.0 + c * steepness_k) - flat)[:, None]

        def apply(slope_PFK: torch.Tensor) -> torch.Tensor:
            slope_PX = slope_PFK.flatten(1)
            return (flat * slope_PX + directions_Pk @ (excess_k1 * (directions_Pk.T @ slope_PX))).view_as(slope_PFK)

        return apply
