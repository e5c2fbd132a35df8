"""The order of pairs in batches, and the tokens of the pairs."""

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError
from tokenizers import processors

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training.batches import BatchOrder, count_steps, tokenise_pairs
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from tests.tiny_encoder import BACK_DE, BACK_FR, reader, tiny_encoder

LENGTHS = np.array([9, 3, 7, 7, 12, 4, 5, 30, 8, 6])


@pytest.fixture
def tokenizer(tmp_path):
    return tiny_encoder(tmp_path)[1]


def test_each_epoch_is_a_new_permutation_without_the_remainder():
    config = TrainingConfig(batch_size=4, epochs=3, seed=5)
    order = BatchOrder(10, config, LENGTHS.__getitem__)
    epochs = [np.concatenate([order.rows(2 * e + 1), order.rows(2 * e + 2)]) for e in range(3)]
    assert all(len(set(rows.tolist())) == 8 for rows in epochs)
    assert not np.array_equal(epochs[0], epochs[1])


def test_a_batch_depends_on_seed_and_step_only():
    config = TrainingConfig(batch_size=4, epochs=3, seed=5)
    walked, jumped = BatchOrder(10, config, LENGTHS.__getitem__), BatchOrder(10, config, LENGTHS.__getitem__)
    last = [walked.rows(step) for step in range(1, 7)][-1]
    np.testing.assert_array_equal(jumped.rows(6), last)
    assert not np.array_equal(BatchOrder(10, config.model_copy(update={"seed": 6}), LENGTHS.__getitem__).rows(6), last)


def test_length_buckets_group_similar_lengths_and_lose_no_pairs():
    lengths = np.random.default_rng(0).integers(3, 60, 200)
    config = TrainingConfig(batch_size=4, epochs=2, seed=5, length_buckets=8)
    order, random = (
        BatchOrder(200, c, lengths.__getitem__) for c in (config, config.model_copy(update={"length_buckets": None}))
    )
    for epoch in range(2):
        steps = range(50 * epoch + 1, 50 * epoch + 51)
        batches = [order.rows(step) for step in steps]
        assert sorted(np.concatenate(batches).tolist()) == list(range(200))
        # A bucket has the same pairs as the random order at these steps.
        assert set(np.concatenate(batches[:8])) == set(np.concatenate([random.rows(step) for step in steps[:8]]))
        spread = np.mean([np.ptp(lengths[rows]) for rows in batches])
        assert spread < 0.25 * np.mean([np.ptp(lengths[random.rows(step)]) for step in steps])
    jumped = BatchOrder(200, config, lengths.__getitem__)
    np.testing.assert_array_equal(jumped.rows(77), order.rows(77))


@pytest.mark.parametrize(
    ("pairs", "epochs", "limit", "steps"), [(10, 1, None, 2), (10, 3, None, 6), (10, 3, 5, 5), (4, 1, 9, 1)]
)
def test_count_steps_counts_full_batches(pairs, epochs, limit, steps):
    assert count_steps(pairs, TrainingConfig(batch_size=4, epochs=epochs, max_steps=limit)) == steps


@pytest.mark.parametrize("buckets", [None, 2])
def test_drop_last_false_includes_the_smaller_last_batch(buckets):
    config = TrainingConfig(batch_size=4, epochs=2, drop_last=False, length_buckets=buckets)
    assert count_steps(10, config) == 6
    order = BatchOrder(10, config, LENGTHS.__getitem__)
    for epoch in range(2):
        batches = [order.rows(3 * epoch + step) for step in (1, 2, 3)]
        assert sorted(np.concatenate(batches).tolist()) == list(range(10))
        assert sorted(map(len, batches)) == [2, 4, 4]
    assert count_steps(3, config) == 2


@pytest.mark.parametrize(("pairs", "sizes"), [(128, [64, 64]), (129, [64, 64]), (130, [2, 64, 64])])
@pytest.mark.parametrize("order", ["random", "given"])
def test_last_batch_of_a_single_pair_is_dropped(pairs, sizes, order):
    config = TrainingConfig(batch_size=64, drop_last=False, order=order)
    assert count_steps(pairs, config) == len(sizes)
    batches = BatchOrder(pairs, config, LENGTHS.__getitem__)
    assert sorted(len(batches.rows(step + 1)) for step in range(len(sizes))) == sizes


def test_bsl_trains_when_a_single_pair_is_left_over(tmp_path):
    """Regression: batch normalisation refused a last batch of one pair, after all other steps of the epoch."""
    encoder, tokenizer = tiny_encoder(tmp_path)
    pairs = pl.DataFrame({"text_1": [*BACK_DE, BACK_DE[0]], "text_2": [*BACK_FR, BACK_FR[1]]})
    config = TrainingConfig(precision="fp32", objective=BSLConfig(k=2), batch_size=4, drop_last=False, collapse=None)
    assert train(pairs, SentenceEncoder(encoder, tokenizer), config).steps == 1


def test_too_few_pairs_are_refused():
    with pytest.raises(TrainingError, match="1 pairs, expected at least one batch of 4"):
        count_steps(1, TrainingConfig(batch_size=4, drop_last=False))
    with pytest.raises(TrainingError, match="3 pairs, expected at least one batch of 4"):
        count_steps(3, TrainingConfig(batch_size=4))


def test_texts_that_repeat_are_tokenised_once(tokenizer):
    frame = pl.DataFrame({"text_1": [*BACK_DE, BACK_DE[0]], "text_2": [*BACK_FR, BACK_DE[1]], "pair_id": range(5)})
    pairs = tokenise_pairs(reader(tokenizer, 24), frame)
    assert (len(pairs), len(pairs.tokens)) == (5, 8)
    for view, column in ((pairs.view_1, "text_1"), (pairs.view_2, "text_2")):
        for row, text in zip(view, frame[column], strict=True):
            ids = pairs.tokens.ids[pairs.tokens.offsets[row] : pairs.tokens.offsets[row + 1]]
            assert ids.tolist() == tokenizer(text)["input_ids"]


def test_pairs_with_missing_column_or_null_text_are_refused(tokenizer):
    with pytest.raises(TrainingError, match=r"lack the columns \['text_2'\], expected \['text_1', 'text_2'\]"):
        tokenise_pairs(reader(tokenizer, 24), pl.DataFrame({"text_1": ["a"]}))
    with pytest.raises(TrainingError, match="text_2 of pair 1 is null"):
        tokenise_pairs(reader(tokenizer, 24), pl.DataFrame({"text_1": ["a", "b"], "text_2": ["a", None]}))


GROUPS = np.random.default_rng(3).integers(0, 60, 200).astype(np.uint64)  # one to eight rows per group


def grouped(groups=GROUPS, **changes):
    config = TrainingConfig(batch_size=16, epochs=2, seed=5, order="groups", drop_last=False).model_copy(update=changes)
    return BatchOrder(len(groups), config, LENGTHS.__getitem__, groups), count_steps(len(groups), config) // 2


def test_group_order_splits_no_group_and_loses_no_row():
    order, steps = grouped()
    largest = np.unique(GROUPS, return_counts=True)[1].max()
    for epoch in range(2):
        batches = [order.rows(epoch * steps + step) for step in range(1, steps + 1)]
        assert sorted(np.concatenate(batches).tolist()) == list(range(200))
        members = [set(GROUPS[rows].tolist()) for rows in batches]
        assert sum(map(len, members)) == len(set().union(*members))  # each group in one batch
        assert all(abs(len(rows) - 16) < largest for rows in batches[:-1])
        for rows in batches:
            assert np.flatnonzero(np.diff(GROUPS[rows].astype(np.int64))).size == len(set(GROUPS[rows].tolist())) - 1


def test_group_order_changes_by_epoch_and_by_seed():
    order, steps = grouped()
    first, second = ([order.rows(epoch * steps + step) for step in range(1, steps + 1)] for epoch in range(2))
    assert not np.array_equal(np.concatenate(first), np.concatenate(second))
    np.testing.assert_array_equal(grouped()[0].rows(steps + 7), second[6])
    assert not np.array_equal(grouped(seed=6)[0].rows(1), first[0])


def test_group_larger_than_a_batch_is_split():
    groups = np.array([1] * 40 + [2] * 3 + [3] * 5, dtype=np.uint64)
    order, steps = grouped(groups)
    batches = [order.rows(step) for step in range(1, steps + 1)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(48))
    assert all(0 < len(rows) < 2 * 16 for rows in batches)


@pytest.mark.parametrize("drop_last", [True, False])
@given(sizes=st.lists(st.sampled_from([1, 1, 2, 3, 4, 4, 5, 9]), min_size=1, max_size=30), seed=st.integers(0, 99))
def test_group_order_makes_no_batch_of_a_single_row(sizes, seed, drop_last):
    groups = np.repeat(np.arange(len(sizes)), sizes).astype(np.uint64)
    assume(len(groups) >= 4)
    order, steps = grouped(groups, batch_size=4, seed=seed, drop_last=drop_last)
    for epoch in range(2):
        batches = [order.rows(epoch * steps + step) for step in range(1, steps + 1)]
        assert all(2 <= len(rows) <= 2 * 4 for rows in batches)
        seen = np.concatenate(batches).tolist()
        assert len(set(seen)) == len(seen)
        assert drop_last or len(seen) == len(groups)


def test_drop_last_omits_whole_groups():
    order, steps = grouped(drop_last=True)
    rows = np.concatenate([order.rows(step) for step in range(1, steps + 1)])
    assert 176 <= len(rows) <= 192
    left = np.setdiff1d(np.arange(200), rows)
    assert not set(GROUPS[left].tolist()) & set(GROUPS[rows].tolist())


def test_given_order_repeats_the_row_order_in_every_epoch():
    order = BatchOrder(10, TrainingConfig(batch_size=4, epochs=2, order="given"), LENGTHS.__getitem__)
    assert [order.rows(step).tolist() for step in (1, 2, 3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]


def test_group_order_needs_groups_and_conflicts_with_length_buckets(tmp_path):
    encoder, pairs = SentenceEncoder(*tiny_encoder(tmp_path)), pl.DataFrame({"text_1": BACK_DE, "text_2": BACK_FR})
    with pytest.raises(TrainingError, match=r"group of pair 0 is missing, .* or choose another objective or order"):
        train(pairs, encoder, TrainingConfig(objective=BSLConfig(), order="groups", batch_size=2, max_steps=1))
    with pytest.raises(ValidationError, match="buckets would change the order"):
        TrainingConfig(order="groups", length_buckets=8)


def test_text_without_tokens_error_names_the_pair(tokenizer):
    tokenizer.backend_tokenizer.post_processor = processors.Sequence([])  # no [CLS] and [SEP]
    frame = pl.DataFrame({"text_1": ["a", "b", "a"], "text_2": ["a", "b", " "]})
    with pytest.raises(TrainingError, match="text_2 of pair 1002 has no token"):
        tokenise_pairs(reader(tokenizer, 24), frame, first_row=1000)
