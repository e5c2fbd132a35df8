"""Property tests: ranges and invariances of the losses, and the closed form of the moving average."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bsl.models.evaluation.metrics import geometry
from bsl.models.objectives.bsl import TargetNorm, bootstrap_loss, ema_update, negative_cosine
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.info_nce import info_nce

finite = st.floats(-10, 10, width=32)


def matrices(rows: int, columns: int = 5) -> st.SearchStrategy[torch.Tensor]:
    nonzero = hnp.arrays(np.float64, (rows, columns), elements=finite).filter(
        lambda a: bool((np.linalg.norm(a, axis=1) > 1e-3).all())
    )
    return nonzero.map(torch.from_numpy)


four_matrices = st.tuples(*(matrices(3) for _ in range(4)))


@given(four_matrices)
def test_bootstrap_loss_is_between_minus_1_and_1(views):
    assert -1 - 1e-12 <= bootstrap_loss(*views).item() <= 1 + 1e-12


@given(four_matrices, st.floats(0.01, 100))
def test_bootstrap_loss_is_invariant_to_scale(views, scale):
    z1, z2, h1, h2 = views
    assert bootstrap_loss(scale * z1, z2, h1, scale * h2).item() == pytest.approx(
        bootstrap_loss(*views).item(), abs=1e-9
    )


@given(four_matrices)
def test_bootstrap_loss_is_symmetric_in_the_views(views):
    z1, z2, h1, h2 = views
    assert bootstrap_loss(z2, z1, h2, h1).item() == pytest.approx(bootstrap_loss(*views).item(), abs=1e-12)


@given(matrices(4), matrices(4))
def test_alignment_equals_2_plus_twice_the_negative_cosine_loss(z, h):
    assert 2 + 2 * negative_cosine(z, h).mean().item() == pytest.approx(
        geometry(z.numpy(), h.numpy()).alignment, abs=1e-9
    )


@given(matrices(4))
def test_info_nce_is_near_zero_for_orthogonal_matching_views(h):
    assert info_nce(torch.eye(4), torch.eye(4), 0.05, symmetric=True).item() < 1e-8
    assert info_nce(h, h.flip(0), 0.05, symmetric=True).item() >= 0


@given(st.floats(0, 1), st.integers(0, 30))
def test_ema_target_equals_the_closed_form(momentum, steps):
    """ξ_n = θ + δⁿ(ξ₀ − θ) for a fixed θ (equation 4)."""
    online, target = torch.nn.Linear(3, 2).double(), torch.nn.Linear(3, 2).double()
    start = target.weight.detach().clone()
    for _ in range(steps):
        ema_update(target, online, momentum)
    expected = online.weight + momentum**steps * (start - online.weight)
    torch.testing.assert_close(target.weight, expected, rtol=0, atol=1e-12)


def test_ema_update_copies_batch_norm_buffers():
    online, target = torch.nn.BatchNorm1d(2), torch.nn.BatchNorm1d(2)
    online(torch.randn(4, 2))
    ema_update(target, online, 0.999)
    assert int(target.num_batches_tracked) == 1
    torch.testing.assert_close(target.running_mean, online.running_mean)


@pytest.mark.parametrize("kind", ["center", "standardize"])
@given(shift=st.floats(-50, 50), scale=st.floats(0.1, 10))
def test_target_norm_centers_or_standardizes_the_first_batch(kind, shift, scale):
    norm = TargetNorm(3, BSLConfig(target_norm=kind)).double()
    h = torch.tensor([[1.0, 2, 3], [-1, 0, 1], [0, 1, 5]], dtype=torch.float64)
    seen = norm(scale * h + shift)
    torch.testing.assert_close(seen.mean(0), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-8)
    expected = h.std(0, unbiased=False) * scale if kind == "center" else torch.ones(3, dtype=torch.float64)
    torch.testing.assert_close(seen.std(0, unbiased=False), expected)


def test_target_norm_defaults_to_identity_and_center_averages_batches():
    h = torch.randn(4, 3)
    assert TargetNorm(3, BSLConfig())(h) is h
    norm = TargetNorm(3, BSLConfig(target_norm="center"))
    norm(torch.zeros(2, 3))
    norm(torch.ones(2, 3))
    torch.testing.assert_close(norm.mean, torch.full((3,), 0.1))
