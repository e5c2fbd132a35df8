"""A static table of token or word vectors is an encoder with the vectors of sentence-transformers."""

from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as theirs
from tokenizers import Tokenizer, models, pre_tokenizers

from bsl.models.encoder import network as network_module
from bsl.models.encoder.cnn import CNN
from bsl.models.encoder.config import LONGEST, EncoderConfig, WordsConfig
from bsl.models.encoder.heads import Dense
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.models.encoder.static import StaticTable, static_tokenizer, write_words
from bsl.models.errors import EncoderError
from bsl.storage.assets.embedded import embedded_path
from tests.exports import exported, library_vectors
from tests.folder_config import saved_config
from tests.tiny_encoder import BACK_DE, ORIGINALS
from tests.tiny_heads import rewrite

TEXTS = [*ORIGINALS, *BACK_DE, "dogs", "a man is playing " * 200, "[PAD] [CLS] of words"]
WIDTH = 16


def tokeniser():
    """Return the tokenizer of bert-mini with its special tokens: real word pieces."""
    return Tokenizer.from_file(str(embedded_path("bert-mini") / "tokenizer.json"))


def table():
    return torch.randn(tokeniser().get_vocab_size(), WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def made(tmp_path):
    def write(*heads):
        embedding = theirs.StaticEmbedding(tokeniser(), embedding_weights=table())
        peer = SentenceTransformer(modules=[embedding, *heads], device="cpu")
        peer.save(str(tmp_path / "theirs"))
        return tmp_path / "theirs", peer.encode(TEXTS)

    return write


@pytest.mark.parametrize("kinds", [(), (theirs.Normalize,), (partial(theirs.Dense, WIDTH, 5), theirs.Normalize)])
def test_load_and_export_match_sentence_transformers_vectors(made, tmp_path, kinds):
    folder, expected = made(*(kind() for kind in kinds))
    encoder = SentenceEncoder.load(folder)
    assert np.abs(encoder.encode(TEXTS) - expected).max() <= 1e-5
    exported(encoder, tmp_path / "ours", TEXTS)


@pytest.mark.parametrize("kinds", [(), (theirs.Normalize,), (partial(theirs.Dense, WIDTH, 5),)])
def test_texts_without_any_token_are_unknown_and_have_the_vector_of_no_tokens(made, kinds):
    folder, _ = made(*(kind() for kind in kinds))
    encoder, texts = SentenceEncoder.load(folder), ["a man", "สวัสดีครับ", "", "\ufffd", " ", "a man"]
    assert encoder.are_unknown(encoder.tokenize(texts)).tolist() == [False, True, True, True, True, False]
    for some in (texts, texts[2:5]):
        expected = SentenceTransformer(str(folder), device="cpu").encode(some)
        np.testing.assert_allclose(encoder.encode(some), expected, atol=1e-5)


def test_static_table_truncates_only_at_a_set_max_length(made, tmp_path):
    folder, expected = made()
    assert SentenceEncoder.load(folder).config.max_length == LONGEST
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="table", max_length=6))
    assert exported(encoder, tmp_path / "ours", TEXTS).config.max_length == 6
    assert np.abs(expected - encoder.encode(TEXTS)).max() > 0.1


def test_static_tokenizer_adds_no_special_tokens_and_matches_no_padding_inside_words(made):
    tokenizer = SentenceEncoder.load(made()[0]).tokenizer
    assert token_ids(tokenizer, ["a man", "a man and a dog"], 24).lengths.tolist() == [2, 5]
    core = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "[UNK]": 2}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = token_ids(static_tokenizer(core), ["the thecat cat"], 24)
    assert (tokens.ids.tolist(), tokens.pad_id) == ([0, 2, 1], 0)


def test_static_table_looks_up_token_vectors_and_receives_gradients(made, monkeypatch):
    encoder = SentenceEncoder.load(made()[0])
    tokens, rows = token_ids(encoder.tokenizer, TEXTS, 24), np.array([5, 0, 8])
    monkeypatch.setattr(network_module, "CPU_STEP_TOKENS", 20)  # several batches
    x_BTD, mask_BT = encoder.network.token_vectors(tokens, rows)
    for x_TD, mask_T, row in zip(x_BTD, mask_BT, rows, strict=True):
        ids = tokens.ids[tokens.offsets[row] : tokens.offsets[row + 1]]
        torch.testing.assert_close(x_TD[mask_T.bool()], table()[ids], rtol=0, atol=0)
    encoder.network.embed(tokens, rows, 20).sum().backward()
    slope_VD = encoder.network.backbone.embedding.weight.grad
    assert slope_VD.abs().sum(1).nonzero().flatten().tolist() == np.unique(tokens.take(rows).ids).tolist()


@pytest.mark.parametrize(
    ("fields", "heads", "message"),
    [
        ({"pooling": "cls"}, [], "a static table with pooling cls and no heads"),
        ({}, [CNN(WIDTH, 2)], "a static table with pooling mean and CNN heads"),
    ],
)
def test_table_that_sentence_transformers_cannot_read_is_not_exported(tmp_path, fields, heads, message):
    network = Encoder(StaticTable(table()), EncoderConfig(model="own", **fields), heads)
    with pytest.raises(EncoderError, match=message):
        SentenceEncoder(network, static_tokenizer(tokeniser())).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_table_built_in_memory_is_exported_with_its_heads(tmp_path):
    config = EncoderConfig(model="own", max_length=LONGEST, normalize=True)
    network = Encoder(StaticTable(table()), config, [], [Dense(WIDTH, 4)]).eval()
    exported(SentenceEncoder(network, static_tokenizer(tokeniser())), tmp_path, TEXTS)


def test_model2vec_mapping_and_weights_are_applied_on_load(made):
    folder, _ = made()
    rng, size = np.random.default_rng(0), tokeniser().get_vocab_size()
    mapping, weights = torch.from_numpy(rng.integers(0, 50, size)), torch.from_numpy(rng.random(size))
    folded = {"embeddings": table()[:50].half(), "mapping": mapping.int(), "weights": weights}
    save_file(folded, folder / "model.safetensors")
    encoder = SentenceEncoder.load(folder)
    expected = SentenceTransformer(str(folder), device="cpu").float().encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, rtol=0, atol=2e-3)  # theirs rounds to fp16
    row = encoder.network.backbone.embedding.weight[9]
    torch.testing.assert_close(row, (folded["embeddings"][mapping[9]].double() * weights[9]).float())


WORDS = [
    "the", "cat", "do", "n't", "don't", "U.S.", ".", ",", "a", "t", "well-known", "well", "known", "1,000", "n", "'",
]  # fmt: skip
WORD_TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32)
WORD_TEXTS = ["the cat, a dog", "Don't do the U.S.", "zebra", "", "well-known 1,000 t.", "THE CAT"]


def saved(folder, words=WORDS, **config):
    write_words(folder, [(words[:5], WORD_TABLE[:5]), (words[5:], WORD_TABLE[5:])], WordsConfig(**config))
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
    tokens = saved(tmp_path, **config).tokenizer.tokenize("don't well-known cat, U.S. 1,000. Zebra")
    assert [token.removeprefix("▁") for token in tokens] == words.split()


def test_words_are_lower_cased_for_an_uncased_vocabulary(tmp_path):
    uncased = saved(tmp_path / "uncased", [word.lower() for word in WORDS])
    for encoder, expected in (
        (uncased, ["▁the", "▁cat"]),
        (saved(tmp_path / "cased"), ["▁cat"]),
        (saved(tmp_path / "asked", case="lower"), ["▁the", "▁cat"]),
    ):
        assert encoder.tokenizer.tokenize("THE cat") == expected


@pytest.mark.parametrize(
    "config", [{"case": "kept"}, {"split": "punctuation", "case": "lower", "marks": False}, {"split": "whitespace"}]
)
def test_sentence_transformers_gives_the_same_vectors_and_settings_round_trip(tmp_path, config):
    encoder = saved(tmp_path / "words", **config)
    assert np.abs(encoder.encode(WORD_TEXTS) - library_vectors(tmp_path / "words", WORD_TEXTS)).max() <= 1e-5
    exported(encoder, tmp_path / "copy", WORD_TEXTS)
    expected = WordsConfig(**{"case": "kept"} | config)
    assert read_saved(tmp_path / "copy").words == read_saved(tmp_path / "words").words == expected
    assert saved_config(tmp_path / "words", "glove") == EncoderConfig(model="glove", max_length=8192, prompt="")


def test_first_vector_of_a_repeated_word_is_used(tmp_path):
    made = write_words(tmp_path, [(["a", "a"], WORD_TABLE[:2]), (["b", "a"], WORD_TABLE[2:4])], WordsConfig())
    assert made == {"words": 2, "repeated": 2, "dimensions": 6}
    weight = SentenceEncoder.load(tmp_path).network.backbone.embedding.weight.detach().numpy()
    np.testing.assert_array_equal(weight, [*WORD_TABLE[[0, 2]], np.zeros(6)])
    with pytest.raises(EncoderError, match="contains no word"):
        write_words(tmp_path, [], WordsConfig())


def test_table_with_another_pre_tokenizer_has_no_words_config(tmp_path):
    saved(tmp_path)
    rewrite(tmp_path / "tokenizer.json", lambda core: core | {"pre_tokenizer": {"type": "Whitespace"}})
    assert read_saved(tmp_path).words is None


def test_zero_vector_receives_no_gradient(tmp_path):
    encoder = saved(tmp_path / "words")
    tokens = token_ids(encoder.tokenizer, WORD_TEXTS, 16)
    encoder.network.train().embed(tokens, np.arange(len(WORD_TEXTS)), 64).square().sum().backward()
    slope = encoder.network.backbone.embedding.weight.grad
    assert not slope[-1].any()
    assert slope[0].any()
