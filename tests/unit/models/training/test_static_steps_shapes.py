"""Fixed batch shapes: the optimal choice, capacity checks, and layouts with the same sentences as packed ones."""

from itertools import combinations

import numpy as np
import pytest
import torch

from bsl.models.encoder.layouts import lay_out
from bsl.models.encoder.shaped import FixedLayouts, Shape
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.static_steps import MAX_SHAPES, MULTIPLE, choose_shapes, least_waste
from tests.tiny_encoder import random_tokens

PAD = 1
CPU = torch.device("cpu")


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
