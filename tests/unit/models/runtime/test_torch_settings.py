"""Settings of torch hold inside a block, in every thread, and return to the caller's afterwards."""

import threading
from contextlib import ExitStack

import pytest
import torch

from bsl.models.runtime.device import arithmetic
from bsl.models.runtime.torch_settings import ieee_products, torch_threads, without_cudnn_attention


@pytest.fixture
def precision():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("allowed", ["highest", "high", "medium"])
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_products_are_ieee_whatever_the_caller_allows(precision, allowed, kind):
    torch.set_float32_matmul_precision(allowed)
    switches = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]
    before = [switch.fp32_precision for switch in switches]
    with arithmetic(torch.device(kind), bf16=False):
        assert [switch.fp32_precision for switch in switches] == ["ieee", "ieee"]
    assert [switch.fp32_precision for switch in switches] == before
    assert torch.get_float32_matmul_precision() == allowed


def switches_of_torch():
    """Return the switches that libraries read; torch raises an error where older and newer ones contradict."""
    newer = [torch.backends.cudnn.conv.fp32_precision, torch.backends.cudnn.rnn.fp32_precision]
    return [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, *newer]


@pytest.mark.parametrize("allowed", ["highest", "high", "medium"])
@pytest.mark.parametrize("tf32", [True, False])
def test_older_switches_agree_with_newer_ones_inside_and_after(precision, monkeypatch, allowed, tf32):
    torch.set_float32_matmul_precision(allowed)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    before = switches_of_torch()
    with ieee_products():
        assert switches_of_torch() == [False, False, "ieee", "ieee"]
        assert torch.get_float32_matmul_precision() == "highest"
        with torch.backends.cudnn.flags(enabled=True):  # as `torch.export` reads and restores them
            pass
        assert switches_of_torch()[:2] == [False, False]
    assert switches_of_torch() == before
    assert torch.get_float32_matmul_precision() == allowed


def test_switches_that_contradict_return_as_the_caller_set_them(precision):
    torch.set_float32_matmul_precision("high")
    newer = [torch.backends.cuda.matmul, torch.backends.cudnn.conv]
    before = [switch.fp32_precision for switch in newer]
    try:
        for switch in newer:
            switch.fp32_precision = "ieee"
        with ieee_products():
            assert not torch.backends.cudnn.allow_tf32
        assert [switch.fp32_precision for switch in newer] == ["ieee", "ieee"]
        with pytest.raises(RuntimeError, match="conv"):
            _ = torch.backends.cudnn.allow_tf32
    finally:
        for switch, value in zip(newer, before, strict=True):
            switch.fp32_precision = value
        torch.backends.cudnn.allow_tf32 = True


def test_cpu_products_do_not_round_to_bf16(precision):
    x, weight = torch.randn(64, 256), torch.randn(64, 256)
    expected = x.double() @ weight.double().T
    torch.set_float32_matmul_precision("medium")
    with ieee_products():
        torch.testing.assert_close((x @ weight.T).double(), expected, rtol=0, atol=1e-4)


def test_cudnn_attention_is_off_inside_the_block_only():
    assert torch.backends.cuda.cudnn_sdp_enabled()
    with without_cudnn_attention():
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()
    with arithmetic(torch.device("cuda"), bf16=False):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def in_new_thread():
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_number_of_threads_is_restored(three_threads):
    with torch_threads(2), torch_threads(1):
        assert torch.get_num_threads() == 1
        assert in_new_thread() == 1
    assert torch.get_num_threads() == 3
    assert in_new_thread() == 3


def test_overlapping_threads_restore_both_threads_and_the_process(three_threads):
    own, opened, close = ExitStack(), threading.Event(), threading.Event()
    numbers: list[int] = []

    def other():
        with torch_threads(1):
            opened.set()
            close.wait(60)
            numbers.append(torch.get_num_threads())
        numbers.append(torch.get_num_threads())

    own.enter_context(torch_threads(2))
    thread = threading.Thread(target=other)
    thread.start()
    assert opened.wait(60)
    own.close()
    assert torch.get_num_threads() == 3, "this thread's block has closed"
    assert in_new_thread() == 1, "the other thread's block is open"
    close.set()
    thread.join()
    assert numbers == [1, 3]
    assert (torch.get_num_threads(), in_new_thread()) == (3, 3)
