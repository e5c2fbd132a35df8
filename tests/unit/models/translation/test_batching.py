"""Batches by token budget, and smaller batches after an out-of-memory error."""

from functools import partial

import pytest
import torch

from bsl.models.errors import TranslationError
from bsl.models.translation.batching import run_in_batches


def lazily(run):
    return lambda start, end: partial(run, start, end)


def test_batch_fits_token_budget_or_has_a_single_sentence():
    batches = []
    run_in_batches([40, 10, 8, 8, 2, 2, 2], 30, lazily(lambda *batch: batches.append(batch)))
    assert batches == [(0, 1), (1, 4), (4, 7)]


@pytest.mark.parametrize(
    "message",
    [
        None,
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",  # torch
        "cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED",  # CTranslate2
        "Out of memory",
    ],
)
def test_out_of_memory_halves_the_batch_and_continues(message):
    calls = []

    def three_rows_fit(start, end):
        if end - start > 3 and message:
            raise RuntimeError(message)
        torch.empty(2**60 if end - start > 3 else 1, dtype=torch.uint8)  # an exbibyte: refused for real
        calls.append((start, end))

    run_in_batches([4] * 10, 32, lazily(three_rows_fit))
    assert calls == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]  # 8 rows, then 4, then 2; never 8 again


def test_out_of_memory_retries_are_collected_after_submitted_batches():
    calls = []

    def submit(start, end):
        calls.append(f"submit {start}-{end}")

        def collect():
            if (start, end) == (0, 4):
                raise RuntimeError("CUDA failed with error out of memory")  # CTranslate2's message
            calls.append(f"collect {start}-{end}")

        return collect

    run_in_batches([4] * 4 + [2] * 8, 16, submit, ahead=2)
    assert calls == [
        "submit 0-4", "submit 4-12", "submit 0-2", "collect 4-12", "submit 2-4", "collect 0-2", "collect 2-4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), TranslationError, "one sentence of 40 tokens does not fit"),
        (RuntimeError("shapes do not match"), RuntimeError, "shapes do not match"),
    ],
)
def test_single_sentence_that_does_not_fit_and_other_errors_are_raised(raised, expected, message):
    def fails(start, end):
        raise raised

    with pytest.raises(expected, match=message):
        run_in_batches([40, 3], 64, lazily(fails))
