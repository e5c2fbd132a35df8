"""Every private name of a library that this package uses: whether it exists, and that the fallback gives the same.

Ruff (SLF001) refuses other ones. A failure of `test_private_name_exists` names the release that removed the name. The
package still works then; decide whether the fallback suffices, and delete its line and the code that uses it.
"""

import atexit
import pkgutil
import platform
import re
import threading
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from torch import nn
from torch.nn import functional

from benchmarks.device.device_limits import int8_product
from bsl.models.encoder import packing, transformer, unpadded
from bsl.models.objectives.bsl import lerp_all
from bsl.models.runtime import device
from bsl.storage.filesystem.folders import files_below, lists_flat
from bsl.tasks.stage.lease import at_thread_end
from tests.unit.models.encoder.test_unpadded import PAD, network

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")


UNPADDED, TRANSFORMER = "models/encoder/unpadded.py", "models/encoder/transformer.py"


class PrivateName(NamedTuple):
    path: str  # importable module, and attributes after a colon
    package: str
    used_in: str
    fallback: str


NAMES = [
    PrivateName("torch:_addmm_activation", "torch", TRANSFORMER, "linear, then gelu"),
    PrivateName("torch:_foreach_lerp_", "torch", "models/objectives/bsl.py", "lerp_ of each tensor"),
    PrivateName("torch:_int_mm", "torch", "benchmarks/device/device_limits.py", "mm of int32"),
    PrivateName("torch:ops.aten._efficient_attention_forward", "torch", UNPADDED, "padded rows"),
    PrivateName("torch:ops.mkldnn._linear_pointwise", "torch", "models/runtime/device.py", "functional.linear"),
    PrivateName("transformers:PreTrainedConfig._attn_implementation", "transformers", UNPADDED, "padded rows"),
    PrivateName(
        "transformers:BertModel._supports_attention_backend", "transformers", "models/encoder/packing.py", "padded rows"
    ),
    PrivateName("fsspec.asyn:AsyncFileSystem._find", "fsspec", "storage/filesystem/folders.py", "list each folder"),
    PrivateName("threading:_register_atexit", "Python", "tasks/stage/lease.py", "atexit.register"),
]


def owner_and_name(private):
    return re.fullmatch(r"(.*)[:.](\w+)", private.path).groups()


@pytest.mark.parametrize("private", NAMES, ids=lambda private: private.path)
def test_private_name_exists(private):
    installed = platform.python_version() if private.package == "Python" else version(private.package)
    owner, name = owner_and_name(private)
    if name == "_linear_pointwise" and platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("used on x86 only")
    fault = f"{private.package} {installed} has no {private.path}. Fallback of {private.used_in}: {private.fallback}"
    assert hasattr(pkgutil.resolve_name(owner), name), fault
    assert re.search(rf"\b{name}\b", (ROOT / private.used_in).read_text(encoding="utf-8"))


@pytest.mark.parametrize("is_missing", [False, True])
def test_gelu_product_without_the_kernel(monkeypatch, is_missing):
    linear, x_ND = nn.Linear(6, 4), torch.randn(5, 6)
    if is_missing:
        monkeypatch.delattr(torch, "_addmm_activation")
    torch.testing.assert_close(
        transformer.product_with_gelu(x_ND, linear),
        functional.gelu(linear(x_ND)),
        rtol=0,
        atol=0 if is_missing else 5e-4,
    )


def test_moving_average_without_the_kernel_is_equal(monkeypatch):
    targets = [[torch.randn(3, 4, generator=torch.Generator().manual_seed(n)) for n in range(3)] for _ in range(2)]
    sources = [torch.randn(3, 4) for _ in range(3)]
    lerp_all(targets[0], sources, 0.01)
    monkeypatch.delattr(torch, "_foreach_lerp_")
    lerp_all(targets[1], sources, 0.01)
    for one, other in zip(*targets, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


def test_int8_product_without_the_kernel_is_equal(monkeypatch):
    a, b = (torch.randint(-127, 128, shape, dtype=torch.int8) for shape in ((32, 16), (16, 24)))
    expected = int8_product(a, b)
    monkeypatch.delattr(torch, "_int_mm")
    assert torch.equal(int8_product(a, b), expected)


def test_linear_without_onednn_operator_is_equal(monkeypatch):
    layer, x_ND = nn.Linear(12, 4), torch.randn(7, 12)
    monkeypatch.setattr(device, "onednn_is_faster", lambda: False)
    with device.arithmetic(CPU, bf16=False):
        torch.testing.assert_close(layer(x_ND), functional.linear(x_ND, layer.weight, layer.bias), rtol=0, atol=0)


def test_attention_without_the_kernel_pads(monkeypatch):
    """Without the operator, torch's public attention computes padded rows, as on a GPU that is not NVIDIA's."""
    monkeypatch.setattr(unpadded, "can_use_efficient_attention", lambda _: True)
    monkeypatch.setattr(unpadded, "has_efficient_attention", lambda: False)
    backbone = network("bert")
    assert packing.packing_of(backbone, PAD) is not None


def test_model_of_unknown_attention_runs_padded(monkeypatch):
    monkeypatch.setattr(packing, "attention_of", lambda _: None)
    assert packing.packing_of(network("bert"), PAD) is None


def test_files_are_listed_folder_by_folder_without_find(monkeypatch):
    fs = MemoryFileSystem()
    fs.pipe({"/private/a": b"", "/private/b/c": b"", "/private/.d": b""})
    monkeypatch.delattr(AsyncFileSystem, "_find")
    assert not lists_flat(fs)
    assert sorted(files_below(fs, "/private")) == ["/private/a", "/private/b/c"]
    fs.rm("/private", recursive=True)


def test_call_at_the_end_without_thread_hook(monkeypatch):
    registered = []
    monkeypatch.delattr(threading, "_register_atexit")
    monkeypatch.setattr(atexit, "register", registered.append)
    at_thread_end(print)
    assert registered == [print]
