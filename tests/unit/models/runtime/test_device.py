"""Copies to a device; products by oneDNN equal those of torch, and only fp32 on the CPU goes to oneDNN."""

import pytest
import torch

from bsl.models.runtime import device
from bsl.models.runtime.device import arithmetic, has_onednn_linear, prefetch_one

CPU = torch.device("cpu")
ONEDNN = pytest.mark.skipif(not has_onednn_linear(), reason="no x86, or torch without oneDNN")


@pytest.fixture
def by_onednn(monkeypatch):
    """Products by oneDNN also on an Intel processor, where MKL is faster."""
    monkeypatch.setattr(device, "onednn_is_faster", has_onednn_linear)


def test_prefetch_one_yields_after_making_the_next_item():
    made = []
    seen = [(item, len(made)) for item in prefetch_one(made.append(number) or number for number in range(4))]
    assert seen == [(0, 2), (1, 3), (2, 4), (3, 4)]
    assert list(prefetch_one(iter([7]))) == [7]
    assert list(prefetch_one(iter([]))) == []


def draw(shape, dtype=torch.float32, bias=True):
    torch.manual_seed(0)
    layer = torch.nn.Linear(shape[-1], 4, bias=bias, dtype=dtype)
    return layer, torch.randn(shape, dtype=dtype, requires_grad=True)


def gradients(layer, x, out):
    torch.manual_seed(1)
    return torch.autograd.grad((out * torch.randn_like(out)).sum(), [x, *layer.parameters()])


@ONEDNN
@pytest.mark.parametrize(
    ("shape", "dtype", "bias", "taken"),
    [
        ((7, 12), torch.float32, True, True),
        ((3, 5, 12), torch.float32, True, True),
        ((2, 12), torch.float32, False, True),
        ((7, 12), torch.float64, True, False),
        ((12,), torch.float32, True, False),
        ((0, 12), torch.float32, True, False),
    ],
)
def test_only_nonempty_fp32_batches_use_onednn_with_values_and_gradients_of_torch(by_onednn, shape, dtype, bias, taken):
    layer, x = draw(shape, dtype, bias)
    with arithmetic(CPU, bf16=False):
        ours = layer(x)
    assert ("_Linear" in type(ours.grad_fn).__name__) == taken
    plain = [layer(x), *gradients(layer, x, layer(x))]
    for found, expected in zip([ours, *gradients(layer, x, ours)], plain, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_frozen_parameters_get_no_gradient(by_onednn, frozen):
    layer, x = draw((7, 12))
    getattr(layer, frozen).requires_grad_(False)
    with arithmetic(CPU, bf16=False):
        layer(x).sum().backward()
    assert getattr(layer, frozen).grad is None
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(7, -1), rtol=1e-5, atol=1e-6)


def test_strided_bias_and_wrong_shapes_fall_back_to_torch(by_onednn):
    layer, x = draw((7, 12))
    layer.bias.data = torch.randn(8)[::2]
    with arithmetic(CPU, bf16=False):
        torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias.clone()))
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            layer(x[:, :5])


def test_bf16_arithmetic_uses_autocast():
    layer, x = draw((7, 12))
    with arithmetic(CPU, bf16=True):
        assert layer(x).dtype is torch.bfloat16
    with arithmetic(CPU, bf16=False), torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).dtype is torch.bfloat16, "an autocast within is obeyed"


@pytest.mark.parametrize(("name", "faster"), [("Intel Xeon", False), ("AMD EPYC 9R14", True), (None, True)])
def test_fp32_products_go_to_onednn_on_processors_that_are_not_intels(monkeypatch, name, faster):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": name})
    device.onednn_is_faster.cache_clear()
    try:
        assert device.onednn_is_faster() == (faster and has_onednn_linear())
    finally:
        device.onednn_is_faster.cache_clear()
