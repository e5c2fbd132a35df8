"""Glow: its log determinant equals the Jacobian's, and its bits per dimension equal the formula."""

import math

import pytest
import torch
from torch.distributions import Normal

from bsl.models.transforms.config import FlowConfig
from bsl.models.transforms.glow import Glow
from tests.equal_losses import assert_equal_losses

MIXINGS = ("reversal", "convolution")


def unsettled(width, mixing, **settings):
    """Return a float64 network with every parameter moved away from its initial value."""
    glow = Glow(width, FlowConfig(mixing=mixing, hidden=5, **settings)).double()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in glow.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return glow


def vectors(rows, width):
    generator = torch.Generator().manual_seed(3)
    return 2 * torch.randn(rows, width, generator=generator, dtype=torch.float64) + 0.5


def plain(glow, x):
    """Return z and log p of a vector, by the definitions, from the network's weights alone."""
    weights = dict(glow.named_parameters()) | dict(glow.named_buffers())
    done, log_p = [], torch.zeros((), dtype=x.dtype)
    for level in range(len(glow.widths)):
        for step in range(len(glow.levels[level])):
            name = f"levels.{level}.{step}."
            x = (x + weights[name + "norm.shift_W"]) * torch.exp(3 * weights[name + "norm.scale_W"])
            log_p = log_p + 3 * weights[name + "norm.scale_W"].sum()
            if name + "mixing.log_W" in weights:
                size = len(x)
                lower = torch.eye(size, dtype=x.dtype) + weights[name + "mixing.lower_WW"].tril(-1)
                diagonal = weights[name + "mixing.sign"] * weights[name + "mixing.log_W"].exp()
                upper = torch.diag(diagonal) + weights[name + "mixing.upper_WW"].triu(1)
                permutation = torch.eye(size, dtype=x.dtype)[weights[name + "mixing.order"]]
                matrix = permutation @ lower @ upper
                x, log_p = matrix @ x, log_p + torch.linalg.slogdet(matrix).logabsdet
            else:
                x = torch.stack([x[-1 - channel] for channel in range(len(x))])
            kept = math.ceil(len(x) / 2)
            hidden = x[:kept]
            for layer in ("first", "second"):
                norm = f"{name}coupling.{layer}_norm."
                (matrix,) = (value for key, value in weights.items() if key.startswith(f"{name}coupling.{layer}_H"))
                hidden = (matrix @ hidden + weights[norm + "shift_W"]) * torch.exp(3 * weights[norm + "scale_W"])
                hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
            moved = weights[name + "coupling.last_MH"] @ hidden + weights[name + "coupling.last_M"]
            x = torch.cat([x[:kept], x[kept:] + moved * torch.exp(3 * weights[name + "coupling.scale_M"])])
        if level + 1 < len(glow.widths):
            half = math.ceil(len(x) / 2)
            done.append(x[half:])
            x = x[:half]
    z = torch.cat([*done, x])
    return z, log_p + Normal(0.0, 1.0).log_prob(z).sum()


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize(
    ("width", "shape"), [(13, {}), (8, {"levels": 2, "depth": 1}), (12, {"levels": 1, "depth": 2})]
)
def test_bits_per_dimension_gradients_and_jacobian_equal_the_restated_formula(mixing, width, shape):
    """Width 13 halves into 7 and 6, 7 into 4 and 3."""
    x_BD = vectors(5, width)
    glow = unsettled(width, mixing, **shape)
    jacobian_DD = torch.autograd.functional.jacobian(lambda x: glow(x[None])[0], x_BD[0])
    torch.testing.assert_close(torch.linalg.slogdet(jacobian_DD).logabsdet, glow.log_determinant().detach())
    rows = [plain(glow, x_D) for x_D in x_BD]
    torch.testing.assert_close(torch.stack([z for z, _ in rows]), glow(x_BD))
    theirs = -torch.stack([log_p for _, log_p in rows]).mean() / (width * math.log(2))
    assert_equal_losses(glow.bits_per_dimension(x_BD), theirs, list(glow.parameters()), 1e-9, 1e-9)


@pytest.mark.parametrize("mixing", MIXINGS)
def test_actnorm_initialization_gives_mean_0_and_variance_1(mixing):
    glow, x_BD = Glow(12, FlowConfig(mixing=mixing)).double(), vectors(200, 12)
    glow.init_actnorm(x_BD)
    for number, steps in enumerate(glow.levels):
        x_BD = x_BD[:, : glow.widths[number]]
        for step in steps:
            left_BW = step.norm(x_BD)
            assert left_BW.mean(dim=0).abs().max() < 1e-9
            assert (left_BW.var(dim=0, correction=0) - 1).abs().max() < 1e-4
            x_BD = step(x_BD)


def test_convolution_is_initialized_as_a_rotation():
    mixing = Glow(10, FlowConfig(mixing="convolution")).double().levels[0][0].mixing
    matrix_WW = mixing(torch.eye(10, dtype=torch.float64)).detach()
    torch.testing.assert_close(matrix_WW @ matrix_WW.T, torch.eye(10, dtype=torch.float64), atol=1e-6, rtol=0)
    assert abs(float(mixing.log_determinant().detach())) < 1e-6


def test_bits_per_dimension_of_normal_vectors_equals_the_entropy():
    x_BD = torch.randn(4096, 8, generator=torch.Generator().manual_seed(0))
    fitted = FlowConfig(max_steps=0, batch_size=4096).fitted(x_BD)
    entropy = 0.5 * math.log2(2 * math.pi * math.e)
    assert abs(fitted.figures["bits_per_dimension"] - entropy) < 0.02
