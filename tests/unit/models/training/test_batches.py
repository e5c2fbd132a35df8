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

LENGTHS = np.random.default_rng(0).integers(3, 60, 200)
GROUPS = np.random.default_rng(3).integers(0, 60, 200).astype(np.uint64)  # one to eight rows per group


def batches(config, pairs=200, groups=None):
    """Return the batches of each epoch, by an order that starts with the last step."""
    order, steps = BatchOrder(pairs, config, LENGTHS.__getitem__, groups), count_steps(pairs, config)
    order.rows(steps)
    rows = [order.rows(step) for step in range(1, steps + 1)]
    size = steps // config.epochs
    return [rows[start : start + size] for start in range(0, steps, size)]


def grouped(groups=GROUPS, **changes):
    fields = {"batch_size": 16, "epochs": 2, "seed": 5, "order": "groups", "drop_last": False} | changes
    return batches(TrainingConfig(**fields), len(groups), groups)


def test_each_epoch_is_a_new_permutation_without_the_remainder():
    config = TrainingConfig(batch_size=4, epochs=3, seed=5)
    epochs = [np.concatenate(epoch) for epoch in batches(config, 10)]
    assert all(len(set(rows.tolist())) == 8 for rows in epochs)
    assert not np.array_equal(epochs[0], epochs[1])
    np.testing.assert_array_equal(BatchOrder(10, config, LENGTHS.__getitem__).rows(6), epochs[2][4:])
    assert not np.array_equal(np.concatenate(batches(config.model_copy(update={"seed": 6}), 10)[0]), epochs[0])


def test_length_buckets_group_similar_lengths_and_lose_no_pairs():
    fields = {"batch_size": 4, "epochs": 2, "seed": 5}
    ordered, random = batches(TrainingConfig(**fields, length_buckets=8)), batches(TrainingConfig(**fields))
    for ours, theirs in zip(ordered, random, strict=True):
        assert sorted(np.concatenate(ours).tolist()) == list(range(200))
        # A bucket has the same pairs as the random order at these steps.
        assert set(np.concatenate(ours[:8])) == set(np.concatenate(theirs[:8]))
        spread, plain = (np.mean([np.ptp(LENGTHS[rows]) for rows in epoch]) for epoch in (ours, theirs))
        assert spread < 0.25 * plain


@pytest.mark.parametrize(
    ("pairs", "fields", "sizes"),
    [
        (10, {"epochs": 3}, [4, 4]),
        (10, {"epochs": 2, "drop_last": False}, [2, 4, 4]),
        (10, {"epochs": 2, "drop_last": False, "length_buckets": 2}, [2, 4, 4]),
        # Regression: batch normalisation refused a last batch of one pair, after all other steps of the epoch.
        (9, {"drop_last": False}, [4, 4]),
        (9, {"drop_last": False, "order": "given"}, [4, 4]),
        (8, {"drop_last": False, "order": "given"}, [4, 4]),
        (10, {"drop_last": False, "order": "given"}, [2, 4, 4]),
        (3, {"drop_last": False}, [3]),
    ],
)
def test_sizes_of_batches(pairs, fields, sizes):
    for epoch in batches(TrainingConfig(batch_size=4, **fields), pairs):
        assert sorted(map(len, epoch)) == sizes
        assert len(set(np.concatenate(epoch).tolist())) == sum(sizes)


def test_max_steps_limits_the_number_of_steps_and_too_few_pairs_are_refused():
    for pairs, epochs, limit, steps in ((10, 3, None, 6), (10, 3, 5, 5), (4, 1, 9, 1)):
        assert count_steps(pairs, TrainingConfig(batch_size=4, epochs=epochs, max_steps=limit)) == steps
    for pairs, drop_last in ((1, False), (3, True)):
        with pytest.raises(TrainingError, match=f"{pairs} pairs, expected at least one batch of 4"):
            count_steps(pairs, TrainingConfig(batch_size=4, drop_last=drop_last))


def test_group_order_splits_no_group_and_depends_on_epoch_and_seed():
    largest, epochs = np.unique(GROUPS, return_counts=True)[1].max(), grouped()
    for epoch in epochs:
        assert sorted(np.concatenate(epoch).tolist()) == list(range(200))
        members = [set(GROUPS[rows].tolist()) for rows in epoch]
        assert sum(map(len, members)) == len(set().union(*members))  # each group in one batch
        assert all(abs(len(rows) - 16) < largest for rows in epoch[:-1])
        for rows, inside in zip(epoch, members, strict=True):
            assert np.flatnonzero(np.diff(GROUPS[rows].astype(np.int64))).size == len(inside) - 1
    assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))
    assert not np.array_equal(grouped(seed=6)[0][0], epochs[0][0])


def test_drop_last_omits_whole_groups():
    rows = np.concatenate(grouped(drop_last=True)[0])
    assert 176 <= len(rows) <= 192
    assert not set(GROUPS[np.setdiff1d(np.arange(200), rows)].tolist()) & set(GROUPS[rows].tolist())


@pytest.mark.parametrize("drop_last", [True, False])
@given(sizes=st.lists(st.sampled_from([1, 1, 2, 3, 4, 4, 5, 9]), min_size=1, max_size=30), seed=st.integers(0, 99))
def test_group_order_makes_no_batch_of_a_single_row_and_splits_large_groups(sizes, seed, drop_last):
    groups = np.repeat(np.arange(len(sizes)), sizes).astype(np.uint64)
    assume(len(groups) >= 4)
    for epoch in grouped(groups, batch_size=4, seed=seed, drop_last=drop_last):
        assert all(2 <= len(rows) <= 2 * 4 for rows in epoch)
        seen = np.concatenate(epoch).tolist()
        assert len(set(seen)) == len(seen)
        assert drop_last or len(seen) == len(groups)


def test_given_order_repeats_the_row_order_in_every_epoch():
    epochs = batches(TrainingConfig(batch_size=4, epochs=2, order="given"), 10)
    assert np.concatenate([np.concatenate(epoch) for epoch in epochs]).tolist() == [*range(8), *range(8)]


def test_group_order_needs_groups_and_conflicts_with_length_buckets(tmp_path):
    encoder, pairs = SentenceEncoder(*tiny_encoder(tmp_path)), pl.DataFrame({"text_1": BACK_DE, "text_2": BACK_FR})
    with pytest.raises(TrainingError, match=r"group of pair 0 is missing, .* or choose another objective or order"):
        train(pairs, encoder, TrainingConfig(objective=BSLConfig(), order="groups", batch_size=2, max_steps=1))
    with pytest.raises(ValidationError, match="buckets would change the order"):
        TrainingConfig(order="groups", length_buckets=8)


def test_texts_that_repeat_are_tokenised_once_and_a_text_without_tokens_is_refused(tmp_path):
    tokenizer = tiny_encoder(tmp_path)[1]
    frame = pl.DataFrame({"text_1": [*BACK_DE, BACK_DE[0]], "text_2": [*BACK_FR, BACK_DE[1]], "pair_id": range(5)})
    pairs = tokenise_pairs(reader(tokenizer, 24), frame)
    assert (len(pairs), len(pairs.tokens)) == (5, 8)
    for view, column in ((pairs.view_1, "text_1"), (pairs.view_2, "text_2")):
        for row, text in zip(view, frame[column], strict=True):
            ids = pairs.tokens.ids[pairs.tokens.offsets[row] : pairs.tokens.offsets[row + 1]]
            assert ids.tolist() == tokenizer(text)["input_ids"]
    tokenizer.backend_tokenizer.post_processor = processors.Sequence([])  # no [CLS] and [SEP]
    frame = pl.DataFrame({"text_1": ["a", "b", "a"], "text_2": ["a", "b", " "]})
    with pytest.raises(TrainingError, match="text_2 of pair 1002 has no token"):
        tokenise_pairs(reader(tokenizer, 24), frame, first_row=1000)
