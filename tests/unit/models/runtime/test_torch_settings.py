"""Settings of torch hold inside a block, in every thread, and return to the caller's afterwards."""

import threading
from contextlib import ExitStack

import pytest
import torch

from bsl.models.runtime.device import arithmetic
from bsl.models.runtime.torch_settings import ieee_products, torch_threads, without_cudnn_attention

NEWER = [
    torch.backends.cuda.matmul, torch.backends.mkldnn.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
]  # fmt: skip


@pytest.fixture(autouse=True)
def _restored():
    allowed, newer = torch.get_float32_matmul_precision(), [switch.fp32_precision for switch in NEWER]
    yield
    torch.set_float32_matmul_precision(allowed)
    for switch, value in zip(NEWER, newer, strict=True):
        switch.fp32_precision = value


def older():
    """Return the switches that libraries read; torch raises an error where older and newer ones contradict."""
    return [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32]


@pytest.mark.parametrize("allowed", ["highest", "high", "medium"])
@pytest.mark.parametrize("tf32", [True, False])
def test_products_are_ieee_whatever_the_caller_allows(monkeypatch, allowed, tf32):
    """The switches are torch's own and exist without a GPU too; convolutions use TF32 by default."""
    torch.set_float32_matmul_precision(allowed)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    before = [*older(), *(switch.fp32_precision for switch in NEWER)]
    with arithmetic(torch.device("cpu"), bf16=False):
        assert {switch.fp32_precision for switch in NEWER} == {"ieee"}
        assert older() == [False, False]
        assert torch.get_float32_matmul_precision() == "highest"
        with torch.backends.cudnn.flags(enabled=True):  # as `torch.export` reads and restores them
            pass
        assert older() == [False, False]
    assert [*older(), *(switch.fp32_precision for switch in NEWER)] == before
    assert torch.get_float32_matmul_precision() == allowed


def test_switches_that_contradict_return_as_the_caller_set_them():
    torch.set_float32_matmul_precision("high")
    newer = [torch.backends.cuda.matmul, torch.backends.cudnn.conv]
    try:
        for switch in newer:
            switch.fp32_precision = "ieee"
        with ieee_products():
            assert not torch.backends.cudnn.allow_tf32
        assert [switch.fp32_precision for switch in newer] == ["ieee", "ieee"]
        with pytest.raises(RuntimeError, match="conv"):
            _ = torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cudnn.allow_tf32 = True


def test_cpu_products_do_not_round_to_bf16():
    x, weight = torch.randn(64, 256), torch.randn(64, 256)
    torch.set_float32_matmul_precision("medium")
    with ieee_products():
        torch.testing.assert_close((x @ weight.T).double(), x.double() @ weight.double().T, rtol=0, atol=1e-4)


@pytest.mark.parametrize("block", [without_cudnn_attention, lambda: arithmetic(torch.device("cuda"), bf16=False)])
def test_cudnn_attention_is_off_inside_the_block_only(block):
    assert torch.backends.cuda.cudnn_sdp_enabled()
    with block():
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def numbers():
    """Return the number of torch's threads in this thread and in a new one."""
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return torch.get_num_threads(), found[0]


def test_number_of_threads_is_restored(three_threads):
    with torch_threads(2):
        with torch_threads(1):
            assert numbers() == (1, 1)
        assert numbers() == (2, 2)
    assert numbers() == (3, 3)


def test_overlapping_threads_restore_both_threads_and_the_process(three_threads):
    own, opened, close = ExitStack(), threading.Event(), threading.Event()
    others = []

    def other():
        with torch_threads(1):
            opened.set()
            close.wait(60)
            others.append(torch.get_num_threads())
        others.append(torch.get_num_threads())

    own.enter_context(torch_threads(2))
    thread = threading.Thread(target=other)
    thread.start()
    assert opened.wait(60)
    own.close()
    assert numbers() == (3, 1), "this thread's block has closed, the other thread's block is open"
    close.set()
    thread.join()
    assert others == [1, 3]
    assert numbers() == (3, 3)
