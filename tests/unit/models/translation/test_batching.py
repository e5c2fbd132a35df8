"""Batches by token budget, and smaller batches after an out-of-memory error."""

from functools import partial

import pytest
import torch

from bsl.models.errors import TranslationError
from bsl.models.translation.batching import run_in_batches


def lazily(run):
    return lambda start, end: partial(run, start, end)


def test_batch_fits_token_budget_or_has_a_single_sentence():
    batches: list[tuple[int, int]] = []
    run_in_batches([40, 10, 8, 8, 2, 2, 2], 30, lazily(lambda *batch: batches.append(batch)))
    assert batches == [(0, 1), (1, 4), (4, 7)]


def test_out_of_memory_halves_the_batch_and_continues():
    calls: list[tuple[int, int]] = []

    def three_rows_fit(start, end):
        if end - start > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        calls.append((start, end))

    run_in_batches([4] * 10, 32, lazily(three_rows_fit))
    assert calls == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]  # 8 rows, then 4, then 2; never 8 again


def test_cpu_allocation_failure_counts_as_out_of_memory():
    rows: list[int] = []

    def allocate(start, end):
        torch.empty(2**60 if end - start > 1 else 1, dtype=torch.uint8)  # an exbibyte: refused for real
        rows.append(start)

    run_in_batches([4, 4, 4, 4], 16, lazily(allocate))
    assert rows == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "said",
    [
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",  # torch
        "cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED",  # CTranslate2
        "Out of memory",
    ],
)
def test_gpu_out_of_memory_messages_are_recognised(said):
    rows: list[int] = []

    def compute(start, end):
        if end - start > 1:
            raise RuntimeError(said)
        rows.append(start)

    run_in_batches([4, 4], 16, lazily(compute))
    assert rows == [0, 1]


def test_out_of_memory_retries_are_collected_after_submitted_batches():
    told: list[str] = []

    def submit(start, end):
        told.append(f"submit {start}-{end}")

        def collect():
            if (start, end) == (0, 4):
                raise RuntimeError("CUDA failed with error out of memory")  # CTranslate2's message
            told.append(f"collect {start}-{end}")

        return collect

    run_in_batches([4] * 4 + [2] * 8, 16, submit, ahead=2)
    assert told == [
        "submit 0-4", "submit 4-12", "submit 0-2", "collect 4-12", "submit 2-4", "collect 0-2", "collect 2-4",
    ]  # fmt: skip


def test_single_sentence_that_does_not_fit_raises_memory_error():
    def nothing_fits(start, end):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(TranslationError, match="one sentence of 40 tokens does not fit"):
        run_in_batches([40, 3], 64, lazily(nothing_fits))


def test_other_errors_are_raised_unchanged():
    def breaks(start, end):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        run_in_batches([4], 64, lazily(breaks))
