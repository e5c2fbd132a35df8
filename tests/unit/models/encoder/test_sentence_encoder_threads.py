"""Threads that share an encoder get the vectors of one thread."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch

from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.runtime.torch_settings import evaluating
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, tiny_encoder

THREADS, TRIALS = 8, 6
ARCHITECTURES = ["bert", "modernbert", "mpnet", "roberta"]


@pytest.fixture(autouse=True)
def _switch_often():
    """Switch threads every 10 µs, so that one trial covers many interleavings."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(call):
    """Call with each thread's number, all threads starting together, and return their results."""
    start = Barrier(THREADS)

    def go(number):
        start.wait()
        return call(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(go, range(THREADS)))


def texts_of(number):
    texts = [*ORIGINALS, *BACK_DE, *BACK_FR]
    return [*texts[number:], " ".join(texts[: number + 1])]  # the last text is longer than the maximum length


def agree(call, expected, atol):
    """Compare each thread's results, of several trials, with the vectors of its texts."""
    for vectors, found in zip(expected, at_once(call), strict=True):
        assert max(np.abs(vectors - again).max() for again in found) < atol


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_concurrent_encode_matches_single_threaded_encode(tmp_path, architecture, training):
    encoder = SentenceEncoder(*tiny_encoder(tmp_path, architecture))
    encoder.network.train(training)
    expected = [encoder.encode(texts_of(number)) for number in range(THREADS)]
    agree(lambda number: [encoder.encode(texts_of(number)) for _ in range(TRIALS)], expected, 1e-6)
    assert encoder.network.training == training


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_concurrent_first_packed_and_padded_passes_match_single_thread(tmp_path, architecture):
    encoder, tokenizer = tiny_encoder(tmp_path, architecture)
    same = SentenceEncoder(tiny_encoder(tmp_path, architecture)[0], tokenizer)

    @torch.inference_mode()
    def either(number):
        tokens = token_ids(tokenizer, texts_of(number), encoder.config.length)
        rows = np.arange(len(tokens))
        if number % 2:
            return [encoder(*tokens.padded(rows)).numpy() for _ in range(TRIALS)]
        return [encoder.embed(tokens, rows, 1024).numpy() for _ in range(TRIALS)]

    agree(either, [same.encode(texts_of(number)) for number in range(THREADS)], 1e-5)


def test_threads_sharing_a_tokenizer_use_their_own_max_length(tmp_path):
    _, tokenizer = tiny_encoder(tmp_path)
    texts = [" ".join(texts_of(0))] * 50
    found = at_once(lambda number: [int(token_ids(tokenizer, texts, 4 + number).lengths.max()) for _ in range(TRIALS)])
    assert found == [[4 + number] * TRIALS for number in range(THREADS)]


def test_training_mode_returns_after_the_last_evaluating_block_also_of_shared_modules(tmp_path):
    """Regression: dropout was in the vectors of one encoder after an `encode` of another with the same transformer."""
    encoder, _ = tiny_encoder(tmp_path)
    encoder.train()
    other = encoder.without_normalize()
    blocks = [evaluating(encoder), evaluating(encoder), evaluating(other)]
    for block in blocks:
        block.__enter__()
    for block in (blocks[2], blocks[0]):
        block.__exit__(None, None, None)
        assert not any(module.training for module in encoder.modules())
    blocks[1].__exit__(None, None, None)
    assert all(module.training for module in [*encoder.modules(), *other.modules()])


def test_public_tokenizer_beside_encode_changes_no_vector(tmp_path):
    """Regression: a call of `encoder.tokenizer` set the truncation of an `encode` in another thread."""
    encoder = SentenceEncoder(*tiny_encoder(tmp_path))
    texts = texts_of(0) * 5
    expected = encoder.encode(texts)

    def some(number):
        if number % 2:
            return [encoder.tokenizer(texts, truncation=True, max_length=4, padding=True) for _ in range(TRIALS * 4)]
        return [encoder.encode(texts) for _ in range(TRIALS)]

    for vectors in at_once(some)[::2]:
        assert max(np.abs(again - expected).max() for again in vectors) < 1e-6
    assert encoder.tokenizer is not encoder.own_tokenizer
