"""Check that CTranslate2 works on a GPU, by a test computation in this process at the requested precision.

Design choices
- The number of GPUs and the list of number formats do not show whether cuBLAS works, which CTranslate2 opens by name at
  its first product. So a model of one layer scores a sentence on each GPU, and its scores are compared with the CPU's.
- cuBLAS is opened from the wheel `nvidia-cublas-cu12` (extra `gpu`), if it is installed: torch may install another CUDA
  version, and the system does not search wheels. The loader then finds the open library by its name.
- The check runs once per process, because artifact keys contain the engine that it selects.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, get_args

from bsl.models.translation.config import Precision
from bsl.storage.filesystem.os_errors import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPUTE_TYPES: Final[Mapping[str, str]] = {
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "int8": "int8",
}
"""CTranslate2's names of the precisions on a CPU; on a GPU, int8 has all operations but products in fp16, not fp32."""
REMEDY: Final = "install its CUDA libraries (pip install 'bsl-pipeline[gpu]') and a driver for CUDA 12 or later"
"""Remedy if CTranslate2 cannot compute on a GPU."""

_CUBLAS: Final = ("libcublasLt.so.12", "libcublas.so.12")  # the second needs the first
_FAILURES: Final = ("cannot be loaded", "CUDA failed", "cuBLAS failed")
_TOLERANCE: Final = 0.25  # of a log-probability: int8 is within 0.07, while another word is off by more than 1
_WIDTH: Final = 64


def compute_type(precision: str, kind: str) -> str:
    """Return CTranslate2's name of a precision on `cpu` or `cuda`."""
    return "int8_float16" if (precision, kind) == ("int8", "cuda") else COMPUTE_TYPES[precision]


def precisions(device: str) -> tuple[Precision, ...]:
    """Return the precisions that work in CTranslate2 on `device`, not a CPU; empty if it does not run there."""
    return tuple(precision for precision in get_args(Precision) if fault(device, precision) is None)


@cache
def fault(device: str, precision: Precision) -> str | None:
    """Return why CTranslate2 cannot compute on a device; the first call runs a test computation.

    Args:
        device: `cuda` (all GPUs), `cuda:1` (one GPU), or another torch device except the CPU.
        precision: Number format of the products.

    Returns:
        The reason in one line; None if its products are correct.
    """
    if device.partition(":")[0] != "cuda":
        return "it runs only on CPUs and NVIDIA GPUs"
    try:
        load_cublas()
        numbers = gpus(device)
        return next(filter(None, (_product_fault(number, precision) for number in numbers)), None)
    except (OSError, RuntimeError, ValueError) as error:
        return first_line(error)


def gpus(device: str) -> list[int]:
    """Return the numbers of a device's GPUs.

    Raises:
        RuntimeError: CTranslate2 does not find the device.
    """
    import ctranslate2

    index = device.partition(":")[2]
    count = ctranslate2.get_cuda_device_count()
    if count <= int(index or 0):
        raise RuntimeError(f"found {count or 'no'} NVIDIA GPUs, expected {device}")
    return [int(index)] if index else list(range(count))


def load_cublas() -> None:
    """Open cuBLAS from its wheel, for all libraries of this process; do nothing if the wheel is not installed.

    Raises:
        OSError: The wheel's library cannot be opened.
    """
    if not sys.platform.startswith("linux"):
        return
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        libraries = [Path(folder) / "cublas" / "lib" / name for name in _CUBLAS]
        if all(library.is_file() for library in libraries):
            for library in libraries:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            return


def is_of_the_gpu(error: RuntimeError) -> bool:
    """Return whether CTranslate2 failed because of its libraries or the GPU, not because of the model."""
    return any(sign in str(error) for sign in _FAILURES)


def _product_fault(number: int, precision: Precision) -> str | None:
    """Return why products on one GPU are wrong, as in `fault`."""
    import ctranslate2

    if compute_type(precision, "cuda") not in ctranslate2.get_supported_compute_types("cuda", number):
        return f"GPU {number} does not support {precision}"
    found, expected = _scores("cuda", number, precision), _scores("cpu", 0, "fp32")
    if all(abs(one - other) <= _TOLERANCE for one, other in zip(found, expected, strict=True)):  # false for NaN too
        return None
    return (
        f"GPU {number} computes wrong products in {precision} (found a first log-probability of {found[0]:.3f}, "
        f"expected {expected[0]:.3f})"
    )


def _scores(kind: str, number: int, precision: Precision) -> list[float]:
    """Return the log-probability of each word of a sentence by a model of one layer with fixed weights."""
    import ctranslate2

    with TemporaryDirectory() as folder:
        _write_model(Path(folder))
        translator = ctranslate2.Translator(
            folder, device=kind, device_index=number, compute_type=compute_type(precision, kind), intra_threads=1
        )
        words = [f"w{word}" for word in range(8)]
        [result] = translator.score_batch([words], [words[::-1]])
    return list(result.log_probs)


def _write_model(folder: Path) -> None:
    """Write a Transformer of one layer in CTranslate2's format; its weights are sines, which need no generator."""
    import numpy as np
    from ctranslate2.specs import TransformerSpec

    def sines(rows: int, columns: int) -> object:
        return np.sin(np.arange(rows * columns) ** 1.3).astype(np.float32).reshape(rows, columns) / 4

    spec = TransformerSpec.from_config(1, 2, pre_norm=False)
    encoder, decoder = spec.encoder, spec.decoder
    for table in (encoder.embeddings[0], decoder.embeddings, decoder.projection):
        table.weight = sines(_WIDTH, _WIDTH)
    [outer], [inner] = encoder.layer, decoder.layer
    for layer in (outer, inner):
        layer.ffn.linear_0.weight = sines(2 * _WIDTH, _WIDTH)
        layer.ffn.linear_1.weight = sines(_WIDTH, 2 * _WIDTH)
    for block, shapes in (
        (outer.self_attention, (3, 1)), (inner.self_attention, (3, 1)), (inner.attention, (1, 2, 1))
    ):  # fmt: skip
        for linear, rows in zip(block.linear, shapes, strict=True):
            linear.weight = sines(rows * _WIDTH, _WIDTH)
    norms = [part.layer_norm for layer in (outer, inner) for part in (layer.self_attention, layer.ffn)]
    for norm in (*norms, inner.attention.layer_norm):
        norm.gamma, norm.beta = np.ones(_WIDTH, np.float32), np.zeros(_WIDTH, np.float32)
    pieces = ["<unk>", "<s>", "</s>", *(f"w{word}" for word in range(_WIDTH - 3))]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize(quantization=None)
    spec.save(str(folder))
