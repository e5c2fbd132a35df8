"""Steps on fixed shapes learn like packed steps, with optimal shapes; batches without one give the reason."""

import logging
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.encoder.layouts import lay_out
from bsl.models.encoder.shaped import FixedLayouts, Shape
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, ISBERTConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig
from bsl.models.objectives.supervised_config import RegressionConfig, SCLConfig
from bsl.models.training import static_steps
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.static_steps import MAX_SHAPES, MULTIPLE, choose_shapes, least_waste
from tests import tiny_training
from tests.tiny_encoder import random_tokens, write_tiny
from tests.tiny_training import CONFIG, PAIRS, run

PAD = 1
CPU = torch.device("cpu")
OBJECTIVES = {
    "bsl": BSLConfig(k=2, momentum=0.9, target_norm="standardize"),
    "BSL+": BSLConfig(k=2, momentum=0.9, target_norm="standardize", contrastive_weight=0.5),
    "bsl of several widths": BSLConfig(k=2, momentum=0.9, dims=(8,)),
    "anchored": ContrastiveConfig(anchor_weight=1.0),
    "distillation with a queue": DistilConfig(queue=4, projection="dropped"),
    "distillation of one view": DistilConfig(views="first"),
    "is-bert": ISBERTConfig(),
    "rehearsal": RegressionConfig(anchor_weight=2.0),
}


def config_of(objective, **changes):
    # A large epsilon suppresses gradients that are pure rounding, as before batch normalisation.
    return CONFIG.model_copy(
        update={"objective": objective, "max_steps": 3, "lr": 1e-3, "eps": 1e-2, "warmup": 0.0, **changes}
    )


@pytest.fixture
def taken(monkeypatch):
    """Return a list that collects the batches of fixed-shape steps."""
    made, in_place = [], static_steps._in_place

    def counted(*given):
        made.append(given[1])
        return in_place(*given)

    monkeypatch.setattr(static_steps, "_in_place", counted)
    return made


@pytest.mark.parametrize(("name", "architecture"), [*((name, "bert") for name in OBJECTIVES), ("bsl", "modernbert")])
def test_static_shape_steps_equal_packed_steps(tmp_path, taken, monkeypatch, name, architecture):
    if name == "rehearsal":
        half_scored = PAIRS.with_columns(score=pl.when(pl.int_range(pl.len()) % 2 == 0).then("score"))
        monkeypatch.setattr(tiny_training, "PAIRS", half_scored)
    folder, config = write_tiny(tmp_path / "model", architecture, dropout=0.0, layers=1), config_of(OBJECTIVES[name])
    packed = run(folder, config, static_shapes=False)
    assert not taken
    fixed = run(folder, config, static_shapes=True)
    assert len(taken) == 3
    for column in ("loss", "grad_norm"):
        assert fixed.log[column][1:].to_list() == pytest.approx(packed.log[column][1:].to_list(), rel=1e-4, abs=1e-5)
    found, expected = (dict(result.state.tensors, best={}) for result in (fixed, packed))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_resumed_run_has_the_weights_of_an_uninterrupted_run(tmp_path):
    """With dropout, negatives and several shapes: the memory of a shape is not part of the state."""
    folder = write_tiny(tmp_path / "model", layers=1)
    config = config_of(OBJECTIVES["BSL+"], max_steps=6)
    whole = run(folder, config, static_shapes=True)
    asked = iter([False, False, True])
    with pytest.raises(Exception, match="3 of 6"):
        run(folder, config, static_shapes=True, work=tmp_path / "work", should_stop=lambda: next(asked))
    resumed = run(folder, config, static_shapes=True, work=tmp_path / "work")
    torch.testing.assert_close(resumed.state.tensors["online"], whole.state.tensors["online"], rtol=0, atol=0)


def test_smaller_last_batches_and_a_cpu_by_default_use_packed_steps(tmp_path, taken):
    """12 pairs in batches of 5: every third batch has 2."""
    folder, config = write_tiny(tmp_path / "model"), config_of(CONFIG.objective, drop_last=False, max_steps=6)
    run(folder, config)
    assert not taken
    run(folder, config, static_shapes=True)
    assert [len(batch) for batch in taken] == [5] * 4


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        (MaskedLMConfig(), "MaskedLM selects its inputs on the CPU"),
        (SCLConfig(), "SCL reads group, label on the CPU"),
        (RegressionConfig(each_text_once=True), "Regression encodes each text of a batch once"),
    ],
)
def test_objective_with_cpu_inputs_logs_reason_for_packed_steps(tmp_path, taken, caplog, objective, reason):
    with caplog.at_level(logging.INFO, static_steps.__name__):
        run(write_tiny(tmp_path / "model"), config_of(objective), static_shapes=True, dev=None)
    assert not taken
    assert f"training steps are packed instead of static shapes: {reason}" in caplog.messages


def test_failed_step_restores_the_buffers():
    """A failed capture leaves its own empty tensors in the buffers."""

    class Broken(torch.nn.Module):
        online = SimpleNamespace(device=CPU)

        def __init__(self):
            super().__init__()
            self.register_buffer("queue", torch.ones(2))

        def forward(self, *_):
            self.queue = torch.zeros(2)
            raise RuntimeError("operation not permitted when stream is capturing")

    broken = Broken()
    before = broken.queue
    with pytest.raises(RuntimeError, match="not permitted"):
        static_steps._in_place(SimpleNamespace(objective=broken, step=0), None, CONFIG, None)
    assert broken.queue is before


def padded(lengths, sizes):
    return sum(min(size for size in sizes if size >= length) for length in lengths)


@pytest.mark.parametrize("most", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(2))
def test_least_waste_equals_the_brute_force_minimum(seed, most):
    lengths = np.random.default_rng(seed).geometric(0.06, 40)
    candidates = sorted({-(-int(length) // 4) * 4 for length in lengths})
    others = combinations(candidates, min(most, len(candidates)))
    best = min(padded(lengths, sizes) for sizes in others if sizes[-1] == candidates[-1])
    sizes = least_waste(lengths, most, 4)
    assert list(sizes) == sorted(set(sizes))
    assert len(sizes) <= most
    assert set(sizes) <= set(candidates)
    assert padded(lengths, sizes) == best
    assert least_waste(np.array([3, 8, 9, 30]), 6, 8) == (8, 16, 32)


class Data:
    """Pairs of views with lengths distributed like NLI's."""

    def __init__(self, pairs):
        self.lengths = np.clip(np.random.default_rng(0).gamma(3, 5, (pairs, 2)).astype(np.int64) + 3, 3, 64)

    def view_lengths(self, rows):
        return self.lengths[rows]


def test_chosen_shapes_add_less_than_3_percent_padding():
    data, config = Data(20_000), TrainingConfig(batch_size=64)
    order = BatchOrder(20_000, config, lambda rows: data.lengths[rows].sum(axis=1))
    shapes = choose_shapes(data, order, 300, 64)
    lengths = [data.view_lengths(order.rows(step)) for step in range(1, 301)]
    taken = [next(shape for shape in shapes if shape.fits(length)) for length in lengths]
    assert len(shapes) == MAX_SHAPES
    assert all(size % MULTIPLE == 0 for shape in shapes for size in (shape.tokens, *shape.views, shape.longest))
    real = sum(int(length.sum()) for length in lengths)
    assert 1.0 <= sum(shape.tokens for shape in taken) / real < 1.03
    # Padded to its longest sentence, as in a plain loop, a batch has more than twice its tokens.
    assert sum(int(length.max()) * 128 for length in lengths) / real > 2
    assert choose_shapes(Data(40), BatchOrder(40, config.model_copy(update={"drop_last": False}), None), 1, 64) == ()


def test_shape_checks_total_tokens_view_tokens_and_longest_sentence():
    shape = Shape(40, (24, 24), 8)
    assert shape.fits(np.array([[8, 8], [8, 8], [8, 0]]))
    assert not shape.fits(np.array([[8, 4], [8, 4], [9, 3]]))  # a sentence too long
    assert not shape.fits(np.array([[8, 1], [8, 1], [8, 1], [1, 1]]))  # first views
    assert not shape.fits(np.array([[8, 7], [8, 8], [8, 8]]))  # all together, although the second views fit


def test_fixed_layout_has_the_sentences_of_a_packed_layout():
    tokens, rows = random_tokens([5, 3, 8, 2, 7, 6]), np.arange(6)
    fixed = FixedLayouts(Shape(40, (24, 24), 8), 3, CPU).of(tokens, rows)
    packed = lay_out(tokens, rows, CPU, by_length=False)
    assert fixed.ids.shape == (1, 40)
    assert (fixed.ids[0, 31:] == PAD).all()
    assert len(fixed.padding.places.unique()) == 40  # each position is used once
    assert fixed.order.tolist() == list(range(6))
    assert fixed.bounds.tolist() == [0, 5, 8, 16, 18, 25, 31, 39, 40, 40, 40, 40]  # padding in sentences of 8 at most
    assert fixed.bounds.dtype == torch.int32
    rows_of = {int(row): place for place, row in enumerate(packed.order)}
    found = fixed.padding.pad(fixed.ids[0]) * fixed.padding.real
    wanted = packed.padding.pad(packed.ids[0]) * packed.padding.real
    for row in range(6):
        assert torch.equal(found[row], wanted[rows_of[row]])


def test_next_batch_reuses_the_memory_of_the_layouts():
    layouts, rows = FixedLayouts(Shape(40, (24, 24), 8), 3, CPU), np.arange(6)
    first = layouts.of(random_tokens([5, 3, 8, 2, 7, 6]), rows)
    views = layouts.of(random_tokens([5, 3, 8, 2, 7, 6]), np.array([0, 1, 2, 0, 1, 2]))
    address, other = first.ids.data_ptr(), random_tokens([1, 4, 2, 8, 8, 3], seed=1)
    filled = layouts.fill(other)
    assert filled.layout(rows) is first
    assert first.ids.data_ptr() == address
    assert torch.equal(first.ids[0, :26], torch.from_numpy(other.ids.astype(np.int64)))
    assert first.padding.real.sum(dim=1).tolist() == [1, 4, 2, 8, 8, 3]
    assert first.bounds.tolist() == [0, 1, 5, 7, 15, 23, 26, 34, 40, 40, 40, 40]
    assert views.ids.shape == (1, 48)
    assert views.padding.real.sum(dim=1).tolist() == [1, 4, 2, 1, 4, 2]
