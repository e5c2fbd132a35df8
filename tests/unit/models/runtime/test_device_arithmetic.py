"""Products by oneDNN equal those of torch, with gradients; only fp32 on the CPU goes to oneDNN."""

import pytest
import torch

from bsl.models.runtime.device import arithmetic, has_onednn_linear

CPU = torch.device("cpu")
ONEDNN = pytest.mark.skipif(not has_onednn_linear(), reason="no x86, or torch without oneDNN")
CASES = [((7, 12), True), ((3, 5, 12), True), ((2, 12), False)]


def draw(shape, dtype=torch.float32, bias=True):
    torch.manual_seed(0)
    layer = torch.nn.Linear(shape[-1], 4, bias=bias, dtype=dtype)
    return layer, torch.randn(shape, dtype=dtype, requires_grad=True)


def gradients(layer, x, out):
    torch.manual_seed(1)
    return torch.autograd.grad((out * torch.randn_like(out)).sum(), [x, *layer.parameters()])


@ONEDNN
@pytest.mark.parametrize(("shape", "bias"), CASES)
def test_onednn_values_and_gradients_match_torch(shape, bias):
    layer, x = draw(shape, bias=bias)
    with arithmetic(CPU, bf16=False):
        ours = layer(x)
    assert "_Linear" in type(ours.grad_fn).__name__
    plain = [layer(x), *gradients(layer, x, layer(x))]
    for found, expected in zip([ours, *gradients(layer, x, ours)], plain, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_frozen_parameters_get_no_gradient(frozen):
    layer, x = draw((7, 12))
    getattr(layer, frozen).requires_grad_(False)
    with arithmetic(CPU, bf16=False):
        layer(x).sum().backward()
    assert getattr(layer, frozen).grad is None
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(7, -1), rtol=1e-5, atol=1e-6)


def test_strided_bias_and_wrong_shapes_fall_back_to_torch():
    layer, x = draw((7, 12))
    layer.bias.data = torch.randn(8)[::2]
    with arithmetic(CPU, bf16=False):
        torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias.clone()))
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            layer(x[:, :5])


@ONEDNN
@pytest.mark.parametrize(
    ("shape", "dtype", "taken"),
    [
        ((7, 12), torch.float32, True),
        ((7, 12), torch.float64, False),
        ((12,), torch.float32, False),
        ((0, 12), torch.float32, False),
    ],
)
def test_only_nonempty_fp32_batches_use_onednn(shape, dtype, taken):
    layer, x = draw(shape, dtype)
    with arithmetic(CPU, bf16=False):
        out = layer(x)
    assert ("_Linear" in type(out.grad_fn).__name__) == taken
    torch.testing.assert_close(out, layer(x))


def test_bf16_arithmetic_uses_autocast():
    layer, x = draw((7, 12))
    with arithmetic(CPU, bf16=True):
        assert layer(x).dtype is torch.bfloat16
    with arithmetic(CPU, bf16=False), torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).dtype is torch.bfloat16, "an autocast within is obeyed"


def test_fp32_on_a_gpu_is_never_tf32():
    """The switches are torch's own and exist without a GPU too; convolutions use TF32 by default."""
    switches = [torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn]
    before = [switch.fp32_precision for switch in switches]
    try:
        for switch in switches:
            switch.fp32_precision = "tf32"
        with arithmetic(torch.device("cuda"), bf16=False):
            assert [switch.fp32_precision for switch in switches] == ["ieee"] * 3
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.fp32_precision = value
