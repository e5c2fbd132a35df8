"""The bench, on a CPU and small shapes: that its checks hold, and that they can fail."""

import re

import polars as pl
import pytest
import torch

from flows.cli.bench import show_rows
from models.bench import compiled, encoding, parity, training, translation
from models.bench.card import Card, measured
from models.bench.figures import (
    Check,
    Rate,
    as_far_as_it_goes,
    as_json,
    at_least,
    at_most,
    holds,
    markdown,
    not_run,
)
from models.bench.fixtures import Fixtures
from storage.embedded import embedded_path
from tasks.bench import described

CPU = torch.device("cpu")
CARD = Card(CPU, "CPU", {"fp32": 1e12, "bf16": 2e12, "int8": 4e12}, 1e10)
SMALL = {"num_hidden_layers": 1, "hidden_size": 24, "intermediate_size": 48}


@pytest.fixture
def fixtures(tmp_path):
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    texts = sample["hypothesis"].unique(maintain_order=True).to_list()
    short = sorted(texts, key=lambda text: (len(text), text))[:1200]
    (tmp_path / "scratch").mkdir()
    return Fixtures(short, embedded_path("bert-mini"), embedded_path("marian-mini-en-mul"), tmp_path / "scratch")


def test_a_processor_has_limits():
    limits = measured(CPU)
    assert set(limits.flops) == {"fp32", "bf16", "int8"}
    assert min(*limits.flops.values(), limits.bytes_per_s) > 0


def test_training_keeps_its_word_on_a_cpu(fixtures):
    found = list(parity.stepping(fixtures, CPU))
    assert [check.verdict for check in found] == ["met"] * 3, found
    assert found[-1].found == f"step {parity.POISONED}, 32 rows"


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
    assert [check.verdict for check in checks] == ["met"]
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
    assert last == not_run("training: to its end", "OutOfMemoryError: CUDA out of memory.")
    assert [*as_far_as_it_goes("vectors", broken_off(error), must=True)][-1].verdict == "MISSED"


def test_rows_are_told_as_they_come_and_the_table_of_them_when_a_person_stops_it(capsys):
    with pytest.raises(KeyboardInterrupt):
        show_rows("A card", broken_off(KeyboardInterrupt()), json=False)
    told = capsys.readouterr()
    assert told.err == "before: 7 pairs/s, 50.0% of products, 2.00 × peer\n"
    assert "| before | 7 pairs/s | 50.0% of products | 2.00 |" in told.out
    assert show_rows("A card", [holds("x", False, "no")], json=True) == 1


def test_a_compiler_that_is_slow_or_missing_is_a_row(fixtures, monkeypatch):
    (row,) = compiled.rate(fixtures, CARD, 1, 8, limit_s=0.5, **SMALL)
    assert (row.verdict, row.found) == ("not run", "not ready after 0.5 s")
    monkeypatch.setenv("CXX", str(fixtures.scratch / "no-compiler"))
    (row,) = compiled.rate(fixtures, CARD, 1, 8, **SMALL)
    assert row.verdict == "not run"
    assert "compiler" in row.found.lower(), row


def test_a_figure_out_of_bounds_is_missed_and_so_is_none_at_all():
    assert [at_most("x", value, 1.0).verdict for value in (1.0, 1.1, float("nan"))] == ["met", "MISSED", "MISSED"]
    assert [at_least("x", value, 0.9).verdict for value in (0.9, 0.8, float("nan"))] == ["met", "MISSED", "MISSED"]
    assert holds("x", False, "no").verdict == "MISSED"


def test_the_tables_are_markdown_and_the_rows_json():
    rows = [
        Rate("work", 1234.5, "pairs/s", 0.25, "products", 2.0),
        not_run("two", "needs 2 GPUs"),
        Rate("peer", 2, "x"),
    ]
    text = markdown("A card", rows)
    assert "| work | 1,234 pairs/s | 25.0% of products | 2.00 |" in text
    assert "| two | needs 2 GPUs |  | not run |" in text
    assert as_json([Check("a", "1", "≤ 2", "met")]) == [{"name": "a", "found": "1", "bound": "≤ 2", "verdict": "met"}]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_call_says_what_is_missing():
    with pytest.raises(ValueError, match=r"sees 0 CUDA devices.*bsl bench cpu"):
        described("cuda")
    assert re.match(r".+, \d+ threads; torch \d", described("cpu"))
