"""The fused cross-entropy equals torch's, with a bias, in blocks, in float64, and without rows."""

import pytest
import torch

from bsl.models.objectives.language_modeling import masked_lm as module
from bsl.models.objectives.language_modeling.masked_lm import linear_cross_entropy


def drawn(rows, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    states, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=dtype, requires_grad=True)
        for shape in ((rows, 8), (20, 8), (20,))
    )
    return states, weight, bias, torch.randint(0, 20, (rows,), generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("elements", [module.ELEMENTS, 20 * 256])  # all rows in one block; two full blocks and a rest
def test_fused_loss_and_gradients_equal_torch_cross_entropy(monkeypatch, smoothing, elements):
    monkeypatch.setattr(module, "ELEMENTS", elements)
    states, weight, bias, labels = drawn(600)
    plain = torch.nn.functional.cross_entropy(states @ weight.T + bias, labels, label_smoothing=smoothing)
    fused = linear_cross_entropy(states, weight, labels, smoothing, bias)
    assert fused.item() == pytest.approx(plain.item(), abs=1e-12)
    wanted, found = (torch.autograd.grad(3 * loss, [states, weight, bias]) for loss in (plain, fused))
    for gradient, ours in zip(wanted, found, strict=True):
        torch.testing.assert_close(ours, gradient, rtol=1e-10, atol=1e-14)


def test_empty_batch_has_zero_loss_and_zero_gradients():
    states, weight, bias, labels = drawn(0)
    loss = linear_cross_entropy(states, weight, labels, bias_V=bias)
    assert loss.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(loss, [states, weight, bias]))


def test_autocast_loss_is_fp32_and_near_the_exact_loss():
    states, weight, bias, labels = drawn(200, torch.float32)
    exact = linear_cross_entropy(states, weight, labels, bias_V=bias)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        short = linear_cross_entropy(states, weight, labels, bias_V=bias)
    assert short.dtype == torch.float32
    assert 0 < abs(short.item() - exact.item()) < 0.02
