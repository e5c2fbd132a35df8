"""A table of word vectors: the mean over a sentence's known words, as in sentence-transformers."""

import json
import re

import numpy as np
import pytest

from bsl.models.encoder.config import EncoderConfig, WordsConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.models.encoder.static import write_words
from bsl.models.errors import EncoderError
from tests.exports import exported, library_vectors
from tests.folder_config import saved_config

WORDS = [
    "the", "cat", "do", "n't", "don't", "U.S.", ".", ",", "a", "t", "well-known", "well", "known", "1,000", "n", "'",
]  # fmt: skip
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32)
TEXTS = ["the cat, a dog", "Don't do the U.S.", "zebra", "", "well-known 1,000 t.", "THE CAT"]


def saved(folder, config, words=WORDS, table=TABLE):
    write_words(folder, [(words[:5], table[:5]), (words[5:], table[5:])], config)
    return SentenceEncoder.load(folder)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "do n't well-known cat , U.S. 1,000 ."),
        ({"marks": False}, "do n't well-known cat U.S. 1,000"),
        ({"split": "punctuation"}, "' t well known cat , . . , ."),
        ({"split": "punctuation", "marks": False}, "t well known cat"),
        ({"split": "whitespace"}, "don't well-known U.S."),
        ({"split": "whitespace", "marks": False}, "don't well-known cat 1,000"),
    ],
)
def test_words_are_split_as_configured_and_unknown_words_dropped(tmp_path, config, words):
    tokenizer = saved(tmp_path, WordsConfig(**config)).tokenizer
    cut = [token.removeprefix("▁") for token in tokenizer.tokenize("don't well-known cat, U.S. 1,000. Zebra")]
    assert cut == words.split()


def test_words_are_lower_cased_for_an_uncased_vocabulary(tmp_path):
    lower = [word.lower() for word in WORDS]
    tokenizer = saved(tmp_path / "uncased", WordsConfig(), lower).tokenizer
    assert tokenizer.tokenize("THE Cat") == ["▁the", "▁cat"]
    tokenizer = saved(tmp_path / "cased", WordsConfig()).tokenizer
    assert tokenizer.tokenize("THE cat") == ["▁cat"]
    tokenizer = saved(tmp_path / "asked", WordsConfig(case="lower")).tokenizer
    assert tokenizer.tokenize("THE cat") == ["▁the", "▁cat"]


def test_vector_is_the_mean_of_known_words_or_zero(tmp_path):
    encoder = saved(tmp_path / "words", WordsConfig(split="whitespace", case="lower"))
    vectors = encoder.encode(TEXTS)
    rows = dict(zip(WORDS, TABLE, strict=True))
    for text, vector in zip(TEXTS, vectors, strict=True):
        known = [rows[word] for word in text.lower().split() if word in rows]
        np.testing.assert_allclose(vector, np.mean(known, axis=0) if known else np.zeros(6), atol=1e-6)
    assert not vectors[2].any()
    assert not vectors[3].any()


@pytest.mark.parametrize("split", ["treebank", "punctuation", "whitespace"])
def test_sentence_transformers_gives_the_same_vectors(tmp_path, split):
    encoder = saved(tmp_path / "words", WordsConfig(split=split))
    assert np.abs(encoder.encode(TEXTS) - library_vectors(tmp_path / "words", TEXTS)).max() <= 1e-5
    exported(encoder, tmp_path / "copy", TEXTS)
    assert read_saved(tmp_path / "copy").words == read_saved(tmp_path / "words").words


def test_first_vector_of_a_repeated_word_is_used(tmp_path):
    made = write_words(tmp_path, [(["a", "a"], TABLE[:2]), (["b", "a"], TABLE[2:4])], WordsConfig())
    assert made == {"words": 2, "repeated": 2, "dimensions": 6}
    encoder = SentenceEncoder.load(tmp_path).network
    np.testing.assert_array_equal(encoder.backbone.embedding.weight.detach().numpy(), [*TABLE[[0, 2]], np.zeros(6)])


def test_zero_vector_receives_no_gradient(tmp_path):
    encoder = saved(tmp_path / "words", WordsConfig())
    tokens = token_ids(encoder.tokenizer, TEXTS, 16)
    encoder.network.train().embed(tokens, np.arange(len(TEXTS)), 64).square().sum().backward()
    slope = encoder.network.backbone.embedding.weight.grad
    assert not slope[-1].any()
    assert slope[0].any()


def test_words_config_round_trips_through_the_folder(tmp_path):
    for number, config in enumerate(
        [WordsConfig(case="kept"), WordsConfig(split="punctuation", case="lower", marks=False)]
    ):
        saved(tmp_path / str(number), config)
        assert read_saved(tmp_path / str(number)).words == config
    assert saved_config(tmp_path / "0", "glove") == EncoderConfig(model="glove", max_length=8192, prompt="")


def test_table_with_another_pre_tokenizer_has_no_words_config(tmp_path):
    saved(tmp_path / "words", WordsConfig())
    settings = json.loads((tmp_path / "words/tokenizer.json").read_text())
    settings["pre_tokenizer"] = {"type": "Whitespace"}
    (tmp_path / "words/tokenizer.json").write_text(json.dumps(settings))
    assert read_saved(tmp_path / "words").words is None


def test_empty_word_table_is_rejected(tmp_path):
    with pytest.raises(EncoderError, match=re.escape("contains no word")):
        write_words(tmp_path, [], WordsConfig())
