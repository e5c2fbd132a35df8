"""Settings changed inside a block only: torch's threads, precision of products and attention, and a network's mode.

A caller of this package computes with torch too, so its settings return when the last block has closed.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import torch

from bsl.storage.process_setting import ProcessSetting

if TYPE_CHECKING:
    from collections.abc import Iterator

_backends: Any = torch.backends
_SWITCHES: Final = tuple(
    getattr(library, kind)
    for library, kinds in (
        (_backends.cuda, ("matmul",)),
        (_backends.cudnn, ("conv", "rnn")),
        (_backends.mkldnn, ("matmul", "conv", "rnn")),
    )
    for kind in kinds
)


class _Products(NamedTuple):
    """Precision of fp32 products: torch's older switches, None where it refuses to tell, and its newer ones.

    Both are set, the older ones first: torch raises an error when a library reads an older switch that contradicts the
    newer ones, as `torch.export` does.
    """

    matmul: str | None
    cudnn_tf32: bool | None
    switches: tuple[str, ...]


_IEEE: Final = _Products("highest", False, ("ieee",) * len(_SWITCHES))


def _products() -> _Products:
    matmul, cudnn_tf32 = None, None
    with suppress(RuntimeError):  # the caller has set older and newer switches differently
        matmul = torch.get_float32_matmul_precision()
    with suppress(RuntimeError):
        cudnn_tf32 = torch.backends.cudnn.allow_tf32
    return _Products(matmul, cudnn_tf32, tuple(switch.fp32_precision for switch in _SWITCHES))


def _set_products(wanted: _Products) -> None:
    if wanted.matmul is not None:
        torch.set_float32_matmul_precision(wanted.matmul)
    if wanted.cudnn_tf32 is not None:
        torch.backends.cudnn.allow_tf32 = wanted.cudnn_tf32
    for switch, value in zip(_SWITCHES, wanted.switches, strict=True):
        switch.fp32_precision = value


_precision = ProcessSetting(_products, _set_products)
_cudnn_attention = ProcessSetting(torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp)


@contextmanager
def ieee_products() -> Iterator[None]:
    """Multiply fp32 in IEEE single precision inside the block.

    TF32, torch's default for convolutions on a GPU, rounds each factor to 10 of 23 bits. A caller may also have allowed
    TF32 or bf16 by `torch.set_float32_matmul_precision`.
    """
    with _precision.set_to(_IEEE):
        yield


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Switch cuDNN's attention off inside the block.

    It is torch's first choice in bf16 on Hopper, and is planned again for every new shape; every batch has a new shape.
    With it, steps of two layers of BERT-base took 11 times as long in bf16 as in fp32 (H100).
    """
    with _cudnn_attention.set_to(False):
        yield


_lock = threading.RLock()
_open: list[tuple[object, int]] = []
_number_before = 0


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Compute with a number of CPU threads inside the block.

    torch has one number for MKL and for threads that start later, and OpenMP one for each running thread. So each
    block restores its own thread's number, and the last one also the number of the process.
    """
    global _number_before
    own, before = object(), torch.get_num_threads()
    with _lock:
        if not _open:
            _number_before = before
        _open.append((own, number))
        torch.set_num_threads(number)
    try:
        yield
    finally:
        with _lock:
            _open[:] = [other for other in _open if other[0] is not own]
            torch.set_num_threads(before if _open else _number_before)
            if _open and _open[-1][1] != before:
                _set_for_other_threads(_open[-1][1])


def _set_for_other_threads(number: int) -> None:
    setting = threading.Thread(target=torch.set_num_threads, args=(number,))
    setting.start()
    setting.join()


_switching = threading.Lock()
_evaluating: WeakKeyDictionary[torch.nn.Module, tuple[int, bool]] = WeakKeyDictionary()  # open blocks, and mode before


@contextmanager
def evaluating(network: torch.nn.Module) -> Iterator[None]:
    """Put a network into evaluation mode for the block.

    Threads, and networks that share modules, may overlap: each module's mode returns when its last block ends.
    """
    modules = list(network.modules())
    with _switching:
        for module in modules:
            others, was_training = _evaluating.get(module, (0, module.training))
            _evaluating[module] = others + 1, was_training
            module.training = False
    try:
        yield
    finally:
        with _switching:
            for module in modules:
                blocks, was_training = _evaluating.pop(module)
                if blocks > 1:
                    _evaluating[module] = blocks - 1, was_training
                else:
                    module.training = was_training
