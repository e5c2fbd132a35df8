"""`python -m benchmarks` on a CPU with small shapes: its checks pass, and they can fail."""

import logging
import re
import signal
import sys
import time

import polars as pl
import pytest
import torch

from benchmarks.__main__ import show_rows
from benchmarks.device import device_limits, encoding, parity, training, translation
from benchmarks.device.bench import BUDGETS, SIZES, TOTAL, described
from benchmarks.device.budget import finished, within
from benchmarks.device.device_limits import Card, measured, seconds
from benchmarks.device.fixtures import Fixtures
from benchmarks.device.results import Rate, at_least, at_most, holds, markdown, not_run
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.diagnostics.finding import Finding
from tests.servers import is_alive

CPU = torch.device("cpu")
CARD = Card(CPU, {"fp32": 1e12, "bf16": 2e12, "int8": 4e12}, 1e10)
SLOW = Card(CPU, {"fp32": 128e9, "int8": 4e12}, 1e10)
SMALL = {"num_hidden_layers": 1, "hidden_size": 24, "intermediate_size": 48}


@pytest.fixture
def fixtures(tmp_path):
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    texts = sample["hypothesis"].unique(maintain_order=True).to_list()
    short = sorted(texts, key=lambda text: (len(text), text))[:1200]
    (tmp_path / "scratch").mkdir()
    return Fixtures(short, embedded_path("bert-mini"), embedded_path("marian-mini-en-mul"), tmp_path / "scratch")


@pytest.fixture
def small_products(monkeypatch):
    """Measure the device's limits on small shapes; those of a real bench take ten seconds on a slow processor."""
    monkeypatch.setattr(device_limits, "SHAPE", {"cpu": (64, 64, 64)})
    monkeypatch.setattr(device_limits, "COPIED", {"cpu": 1 << 20})


@pytest.mark.usefixtures("small_products")
@pytest.mark.parametrize("lacking", ["", "no bf16 units on this processor"])
def test_measured_cpu_limits_are_positive_and_exclude_slow_bf16(lacking, monkeypatch):
    monkeypatch.setattr(device_limits, "why_fp32", lambda _: lacking)
    limits = measured(CPU)
    assert set(limits.flops) == {"fp32", "int8", *([] if lacking else ["bf16"])}
    assert min(*limits.flops.values(), limits.bytes_per_s) > 0


def test_slow_precision_is_reported_and_not_benchmarked(fixtures):
    (row,) = [row for row in SLOW.rates() if isinstance(row, Finding)]
    assert row.subject == "bf16"
    assert row.verdict == "not run"
    assert [row.subject for row in CARD.rates()][1] == "limit: products, bf16"
    rows = [
        *training.rates(fixtures, SLOW, 1, 8, **SMALL),
        *encoding.rates(fixtures, SLOW, 16, **SMALL),
    ]
    assert [row.subject for row in rows if "fp32" in row.subject and "peer" not in row.subject]
    assert not any("bf16" in row.subject for row in rows)


def test_slow_work_is_timed_fewer_times():
    now, calls = iter(range(100_000)), []
    assert seconds(lambda: calls.append(next(now)), CPU, repeats=10, limit_s=60.0) >= 0
    assert len(calls) == 1 + 3 * 10
    calls.clear()
    took = seconds(lambda: calls.append(time.sleep(0.03)), CPU, repeats=10, limit_s=0.2)
    assert took >= 0.03
    assert 3 <= len(calls) <= 10


def test_training_parity_checks_are_met_on_cpu(fixtures):
    found = list(parity.stepping(fixtures, measured(CPU, (256, 256, 256))))
    assert [check.verdict for check in found] == ["met"] * 4, found
    assert found[-1].found == f"step {parity.POISONED}, 32 rows"


def test_captured_and_plain_training_steps_have_separate_rows(fixtures, monkeypatch):
    """The rows are those of a GPU, with and without fixed shapes; no graph is captured."""
    monkeypatch.setattr(training, "_ways", lambda _: (True, False))
    names = [rate.subject for rate in training.rates(fixtures, CARD, 1, 64, **SMALL)]
    assert [name.partition("step, ")[2] for name in names[1:]] == ["fp32, captured", "fp32", "bf16, captured", "bf16"]


def test_training_rates_have_peer_ratio_and_share_of_limit(fixtures):
    rates = list(training.rates(fixtures, CARD, 1, 64, **SMALL))
    assert len(rates) == 3
    assert all(rate.rate > 0 and 0 < rate.share < 10 for rate in rates)
    assert [rate.ratio is None for rate in rates[:3]] == [True, False, False]


def test_encoding_and_probe_benchmarks_return_positive_rates(fixtures):
    assert all(rate.rate > 0 for rate in encoding.rates(fixtures, CARD, 64, **SMALL))
    assert [rate.rate > 0 for rate in encoding.probes(CARD, 120, folds=2)] == [True, True]


def test_both_translation_backends_agree_and_have_rates(fixtures):
    few = Fixtures(fixtures.texts[:8], fixtures.encoder, fixtures.translator, fixtures.scratch)
    checks = list(translation.parity(few, CPU, 8))
    assert [check.verdict for check in checks] == ["met", "met"], checks
    smaller = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    rates = list(translation.rates(few, CARD, 8, **smaller))
    assert [rate.ratio is None for rate in rates] == [True, False, False, False, False]


def test_translation_parity_restores_the_torch_thread_count(fixtures):
    few = Fixtures(fixtures.texts[:2], fixtures.encoder, fixtures.translator, fixtures.scratch)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        list(translation.parity(few, CPU, 2))
        assert torch.get_num_threads() == 3, "what is timed next would be held against more cores than it has"
    finally:
        torch.set_num_threads(before)


def broken_off(error):
    yield Rate("before", 7.0, "pairs/s", 0.5, "products", 2.0)
    raise error


def test_failed_section_returns_its_rows_and_the_error():
    error = torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")
    *before, last = within("training", broken_off(error), 60.0, must=False)
    assert [row.subject for row in before] == ["before"]
    assert last == not_run("training: complete", "OutOfMemoryError: CUDA out of memory.")
    assert [*within("vectors", broken_off(error), 60.0, must=True)][-1].verdict == "MISSED"


def slow(log):
    """Yield two rows, then hang; work that swallows every exception does not hide the end."""
    yield Rate("first", 1.0, "x")
    yield Rate("second", 2.0, "x")
    try:
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # as libraries do
                log.append("swallowed")
    finally:
        log.append("cleaned up")


def test_section_over_its_time_budget_is_cut_and_reported():
    log = []
    began = time.monotonic()
    *rows, last = within("probes", slow(log), 0.3, must=True)
    assert time.monotonic() - began < 3
    assert [row.subject for row in rows] == ["first", "second"]
    assert last == not_run("probes: complete", "cut after 0.3 s")
    assert log == ["cleaned up"]


def test_time_budget_excludes_time_spent_by_the_consumer():
    rows = within("x", iter([Rate("one", 1.0, "x"), Rate("two", 1.0, "x")]), 0.2, must=False)
    assert next(rows).subject == "one"
    time.sleep(0.4)  # the reader's time
    assert [row.subject for row in rows] == ["two"]


def test_time_budget_restores_the_previous_timer_and_handler():
    handler, timer = signal.getsignal(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 1000.0)
    try:
        assert len(list(within("x", [Rate("one", 1.0, "x")], 5.0, must=False))) == 1
        assert 990 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)


def test_budget_does_not_interrupt_logging():
    """An exception right after `logging` has locked its module would leave it locked for all other threads."""
    told = []

    class Slow(logging.Handler):
        def emit(self, record):
            deadline = time.monotonic() + 0.2
            while time.monotonic() < deadline:
                pass
            told.append(record.getMessage())

    def telling():
        logger = logging.getLogger("bsl-test-budget")
        logger.addHandler(Slow())
        logger.warning("complete")
        time.sleep(10)
        yield Rate("one", 1.0, "x")

    *_, last = within("telling", telling(), 0.05, must=True)
    assert last == not_run("telling: complete", "cut after 0.05 s")
    assert told == ["complete"]


def test_cut_command_leaves_no_child_process(tmp_path):
    """Launchers start processes of their own, which would go on after the launcher is killed."""
    script = "import subprocess, sys; subprocess.run(['sh', '-c', 'echo $$; exec sleep 60'])"
    launched = (finished([sys.executable, "-c", script], tmp_path / "log") for _ in range(1))
    assert "cut after" in next(within("two processes", launched, 2.0, must=True)).found
    worker = int((tmp_path / "log").read_text())
    deadline = time.monotonic() + 10
    while is_alive(worker):
        assert time.monotonic() < deadline, f"process {worker} is still at work"
        time.sleep(0.02)


def test_section_budgets_sum_to_less_than_the_limit():
    """Training runs once for each batch size; the rest of the time is for imports and device limits."""
    assert TOTAL["cpu"] < 300
    assert TOTAL["cuda"] < 600
    for kind, limit in (("cpu", 250), ("cuda", 550)):
        sections = dict(BUDGETS[kind])
        assert sum(sections.values()) + (len(SIZES[kind].batches) - 1) * sections["training"] <= limit


def test_interrupted_bench_prints_finished_rows_and_their_table(capsys):
    with pytest.raises(KeyboardInterrupt):
        show_rows("A card", broken_off(KeyboardInterrupt()), json=False)
    told = capsys.readouterr()
    assert told.err == "before: 7 pairs/s, 50.0% of products, 2.00 × peer\n"
    assert "| before | 7 pairs/s | 50.0% of products | 2.00 |" in told.out
    assert show_rows("A card", [holds("x", False, "no")], json=True) == 1


def test_out_of_bounds_or_nan_value_misses_the_check():
    assert [at_most("x", value, 1.0).verdict for value in (1.0, 1.1, float("nan"))] == ["met", "MISSED", "MISSED"]
    assert [at_least("x", value, 0.9).verdict for value in (0.9, 0.8, float("nan"))] == ["met", "MISSED", "MISSED"]
    assert holds("x", False, "no").verdict == "MISSED"


def test_results_are_rendered_as_a_markdown_table():
    rows = [
        Rate("work", 1234.5, "pairs/s", 0.25, "products", 2.0),
        not_run("two", "needs 2 GPUs"),
        Rate("peer", 2, "x"),
    ]
    text = markdown("A card", rows)
    assert "| work | 1,234 pairs/s | 25.0% of products | 2.00 |" in text
    assert "| not run | two | needs 2 GPUs |" in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_described_raises_for_cuda_without_a_gpu():
    with pytest.raises(ValueError, match=r"sees 0 CUDA devices.*python -m benchmarks cpu"):
        described("cuda")
    assert re.match(r".+, \d+ threads; torch \d", described("cpu"))
