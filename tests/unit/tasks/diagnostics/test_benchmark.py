"""`bsl bench` on a CPU with small shapes: its checks pass, and they can fail."""

import re
import signal
import sys
import time

import polars as pl
import pytest
import torch

from flows.cli.diagnostics import show_rows
from storage.assets.embedded import embedded_path
from tasks.diagnostics.benchmark import bench as bench_module
from tasks.diagnostics.benchmark import budget, device_limits, encoding, parity, training, translation
from tasks.diagnostics.benchmark.bench import BUDGETS, SIZES, TOTAL, described
from tasks.diagnostics.benchmark.budget import finished, within
from tasks.diagnostics.benchmark.device_limits import Card, measured, precisions_of, seconds
from tasks.diagnostics.benchmark.fixtures import Fixtures
from tasks.diagnostics.benchmark.results import (
    Check,
    Rate,
    as_far_as_it_goes,
    at_least,
    at_most,
    holds,
    markdown,
    not_run,
)
from tests.servers import is_alive

CPU = torch.device("cpu")
CARD = Card(CPU, "CPU", {"fp32": 1e12, "bf16": 2e12, "int8": 4e12}, 1e10)
EMULATED = Card(CPU, "CPU", {"fp32": 128e9, "bf16": 18e9, "int8": 4e12}, 1e10)
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
    monkeypatch.setattr(device_limits, "PROBE", {"cpu": (64, 64, 64)})
    monkeypatch.setattr(device_limits, "COPIED", {"cpu": 1 << 20})


@pytest.mark.usefixtures("small_products")
def test_a_processor_has_limits():
    limits = measured(CPU)
    assert set(limits.flops) == {"fp32", "bf16", "int8"}
    assert min(*limits.flops.values(), limits.bytes_per_s) > 0


def test_what_has_no_units_is_named_and_not_run(fixtures):
    assert [row for row in EMULATED.rates() if isinstance(row, Check)] == [
        not_run("bf16", "emulated, 18 GFLOP/s, not used")
    ]
    assert [row.name for row in CARD.rates()][1] == "limit: products, bf16"
    rows = [
        *training.rates(fixtures, EMULATED, 1, (8,), **SMALL),
        *encoding.rates(fixtures, EMULATED, 16, **SMALL),
    ]
    assert [row.name for row in rows if "fp32" in row.name and "peer" not in row.name]
    assert not any("bf16" in row.name for row in rows)


@pytest.mark.parametrize(("bf16", "precisions"), [(2.0, ("fp32", "bf16")), (0.99, ("fp32",)), (1.0, ("fp32",))])
def test_bf16_that_is_not_faster_is_emulated(bf16, precisions):
    assert precisions_of({"fp32": 1.0, "bf16": bf16}) == precisions


def test_work_that_takes_long_is_timed_fewer_times():
    now, calls = iter(range(100_000)), []
    assert seconds(lambda: calls.append(next(now)), CPU, repeats=10, limit_s=60.0) >= 0
    assert len(calls) == 1 + 3 * 10
    calls.clear()
    took = seconds(lambda: calls.append(time.sleep(0.03)), CPU, repeats=10, limit_s=0.2)
    assert took >= 0.03
    assert 3 <= len(calls) <= 10


@pytest.mark.slow
def test_training_keeps_its_word_on_a_cpu(fixtures):
    found = list(parity.stepping(fixtures, measured(CPU, (256, 256, 256))))
    assert [check.verdict for check in found] == ["met"] * 4, found
    assert found[-1].found == f"step {parity.POISONED}, 32 rows"


@pytest.mark.slow
def test_steps_of_fixed_shape_are_timed_as_a_gpu_times_them(fixtures, monkeypatch):
    """The rows are those of a GPU, with and without fixed shapes; no graph is captured."""
    monkeypatch.setattr(training, "_ways", lambda _: (True, False))
    names = [rate.name for rate in training.rates(fixtures, CARD, 1, (64,), **SMALL)]
    assert [name.partition("step, ")[2] for name in names[1:]] == ["fp32, captured", "fp32", "bf16, captured", "bf16"]


def test_rates_have_a_peer_and_a_share(fixtures):
    rates = list(training.rates(fixtures, CARD, 1, (64, 128), **SMALL))
    assert len(rates) == 3 * 2
    assert all(rate.rate > 0 and 0 < rate.share < 10 for rate in rates)
    assert [rate.ratio is None for rate in rates[:3]] == [True, False, False]


def test_encoding_and_probes_run(fixtures):
    assert all(rate.rate > 0 for rate in encoding.rates(fixtures, CARD, 64, **SMALL))
    assert [rate.rate > 0 for rate in encoding.probes(CARD, 120, folds=2)] == [True, True]


def test_both_engines_translate_alike_and_are_timed(fixtures):
    few = Fixtures(fixtures.texts[:8], fixtures.encoder, fixtures.translator, fixtures.scratch)
    checks = list(translation.parity(few, CPU, 8))
    assert [check.verdict for check in checks] == ["met", "met"], checks
    smaller = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    rates = list(translation.rates(few, CARD, 8, **smaller))
    assert [rate.ratio is None for rate in rates] == [True, False, False, False, False]


def test_what_translates_leaves_torch_its_threads(fixtures):
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


def test_a_section_that_breaks_off_keeps_its_rows_and_says_why():
    error = torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")
    *before, last = as_far_as_it_goes("training", broken_off(error), must=False)
    assert [row.name for row in before] == ["before"]
    assert last == not_run("training: complete", "OutOfMemoryError: CUDA out of memory.")
    assert [*as_far_as_it_goes("vectors", broken_off(error), must=True)][-1].verdict == "MISSED"


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


def test_a_section_is_cut_at_its_budget_and_says_so():
    log = []
    began = time.monotonic()
    *rows, last = within("probes", as_far_as_it_goes("probes", slow(log), must=True), 0.3)
    assert time.monotonic() - began < 3
    assert [row.name for row in rows] == ["first", "second"]
    assert last == not_run("probes: complete", "cut after 0.3 s")
    assert log == ["cleaned up"]


def test_only_the_making_of_rows_counts_and_a_section_in_time_is_not_cut():
    rows = within("x", iter([Rate("one", 1.0, "x"), Rate("two", 1.0, "x")]), 0.2)
    assert next(rows).name == "one"
    time.sleep(0.4)  # the reader's time
    assert [row.name for row in rows] == ["two"]


def test_another_timer_of_the_process_goes_on():
    handler, timer = signal.getsignal(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 1000.0)
    try:
        assert len(list(within("x", [Rate("one", 1.0, "x")], 5.0))) == 1
        assert 990 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)


def test_a_command_that_is_cut_leaves_no_process(tmp_path):
    """Launchers start processes of their own, which would go on after the launcher is killed."""
    script = "import subprocess, sys; subprocess.run(['sh', '-c', 'echo $$; exec sleep 60'])"
    launched = (finished([sys.executable, "-c", script], tmp_path / "log") for _ in range(1))
    assert "cut after" in next(within("two processes", launched, 2.0)).found
    worker = int((tmp_path / "log").read_text())
    deadline = time.monotonic() + 10
    while is_alive(worker):
        assert time.monotonic() < deadline, f"process {worker} is still at work"
        time.sleep(0.02)


def test_budgets_are_below_five_and_ten_minutes():
    """Training runs once for each batch size; the rest of the time is for imports and device limits."""
    assert TOTAL["cpu"] < 300
    assert TOTAL["cuda"] < 600
    for kind, limit in (("cpu", 250), ("cuda", 550)):
        sections = dict(BUDGETS[kind])
        assert sum(sections.values()) + (len(SIZES[kind].batches) - 1) * sections["training"] <= limit


# An exception inside a callback of the garbage collector is reported and lost; the next one cuts the section.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("small_products")
def test_the_bench_comes_to_its_end_when_no_section_has_time(monkeypatch):
    """Every section starts, is cut, and says so; the device limits come first and are complete."""
    monkeypatch.setattr(budget, "AGAIN_S", 0.5)
    monkeypatch.setitem(BUDGETS, "cpu", dict.fromkeys(BUDGETS["cpu"], 0.05))
    monkeypatch.setattr(bench_module, "LEAST_S", 0.05)
    rows = list(bench_module.bench("cpu", quick=True))
    cut = [row.name.removesuffix(": complete") for row in rows if isinstance(row, Check) and "cut after" in row.found]
    sections = [name for name in BUDGETS["cpu"] if name != "training"]
    assert set(cut) == {*sections, "training, 64 pairs a step"}
    assert [row.name for row in rows][:1] == ["limit: products, fp32"]


def test_rows_are_told_as_they_come_and_the_table_of_them_when_a_person_stops_it(capsys):
    with pytest.raises(KeyboardInterrupt):
        show_rows("A card", broken_off(KeyboardInterrupt()), json=False)
    told = capsys.readouterr()
    assert told.err == "before: 7 pairs/s, 50.0% of products, 2.00 × peer\n"
    assert "| before | 7 pairs/s | 50.0% of products | 2.00 |" in told.out
    assert show_rows("A card", [holds("x", False, "no")], json=True) == 1


def test_a_figure_out_of_bounds_is_missed_and_so_is_none_at_all():
    assert [at_most("x", value, 1.0).verdict for value in (1.0, 1.1, float("nan"))] == ["met", "MISSED", "MISSED"]
    assert [at_least("x", value, 0.9).verdict for value in (0.9, 0.8, float("nan"))] == ["met", "MISSED", "MISSED"]
    assert holds("x", False, "no").verdict == "MISSED"


def test_the_tables_are_markdown():
    rows = [
        Rate("work", 1234.5, "pairs/s", 0.25, "products", 2.0),
        not_run("two", "needs 2 GPUs"),
        Rate("peer", 2, "x"),
    ]
    text = markdown("A card", rows)
    assert "| work | 1,234 pairs/s | 25.0% of products | 2.00 |" in text
    assert "| two | needs 2 GPUs |  | not run |" in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_call_says_what_is_missing():
    with pytest.raises(ValueError, match=r"sees 0 CUDA devices.*bsl bench cpu"):
        described("cuda")
    assert re.match(r".+, \d+ threads; torch \d", described("cpu"))
