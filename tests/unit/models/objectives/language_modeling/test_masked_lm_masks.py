"""Masking: the number of masked tokens, their choice, and their replacements."""

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from bsl.models.errors import EncoderError
from bsl.models.objectives.language_modeling.masked_lm import Masking
from tests.tiny_encoder import write_tiny

MASK, SIZE = 4, 1000
MASKING = Masking(MASK, np.arange(5), SIZE)


@pytest.mark.parametrize("share", [0.15, 0.3])
def test_chosen_tokens_are_80_percent_masked_10_percent_random(share):
    ids = np.random.default_rng(1).integers(5, SIZE, 200_000)
    seen, chosen = MASKING.mask_tokens(ids, share, np.random.default_rng(2))
    assert chosen.mean() == pytest.approx(share, abs=0.003)
    assert np.array_equal(seen[~chosen], ids[~chosen])
    hidden, same = (seen[chosen] == MASK), (seen[chosen] == ids[chosen])
    assert hidden.mean() == pytest.approx(0.8, abs=0.01)
    assert same.mean() == pytest.approx(0.1, abs=0.01)
    other = seen[chosen][~hidden & ~same]
    assert other.min() >= 5
    assert len(np.unique(other)) > SIZE / 2


def test_masking_skips_special_tokens_and_selects_another_token():
    ids = np.array([2, 77, 3, 2, 3, 0])
    for seed in range(50):
        seen, chosen = MASKING.mask_tokens(ids, 0.01, np.random.default_rng(seed))
        assert chosen.tolist() == [False, True, False, False, False, False]
        assert np.array_equal(np.delete(seen, 1), np.delete(ids, 1))
    assert not MASKING.mask_tokens(np.array([2, 3]), 0.5, np.random.default_rng(0))[1].any()


def test_masks_repeat_for_equal_seeds_and_differ_between_draws():
    ids = np.arange(5, 500)
    generator = np.random.default_rng(7)
    first, second = (MASKING.mask_tokens(ids, 0.15, generator)[1] for _ in range(2))
    assert np.array_equal(first, MASKING.mask_tokens(ids, 0.15, np.random.default_rng(7))[1])
    assert not np.array_equal(first, second)


def test_tokenizer_without_a_mask_token_is_refused(tmp_path: Path):
    folder = write_tiny(tmp_path)
    known = Masking.of(AutoTokenizer.from_pretrained(folder))
    assert (known.mask_id, known.special.tolist()) == (4, [0, 1, 2, 3, 4])
    bare = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]")
    with pytest.raises(EncoderError, match="has no mask token"):
        Masking.of(bare)
