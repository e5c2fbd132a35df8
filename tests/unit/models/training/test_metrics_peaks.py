"""The declared peak of a GPU is chosen by its exact name, not by a shared prefix."""

import pytest
import torch

from bsl.models.training.metrics import peak_flops


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", 835e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L40", 181e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA A10", 125e12),
        ("NVIDIA B200", 2250e12),
        ("NVIDIA GB200", 2500e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA H200 NVL", 835e12),
        ("Tesla T4", 65e12),
        ("Tesla V100-SXM2-32GB", 125e12),
        ("Tesla V100-PCIE-16GB", 112e12),
        ("NVIDIA A10G", None),
        ("NVIDIA B300", None),
        ("NVIDIA T400", None),
        ("NVIDIA RTX A1000", None),
    ],
)
def test_peak_flops_match_the_exact_gpu_name(monkeypatch, name, peak):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: name)
    assert peak_flops(torch.device("cuda")) == peak


def test_cpu_has_no_peak_flops():
    assert peak_flops(torch.device("cpu")) is None
