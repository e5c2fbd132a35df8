"""A static table of token vectors is an encoder with the vectors of sentence-transformers' StaticEmbedding."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as theirs
from tokenizers import Tokenizer, models, pre_tokenizers

from bsl.models.encoder import network as network_module
from bsl.models.encoder.cnn import CNN
from bsl.models.encoder.config import LONGEST, EncoderConfig
from bsl.models.encoder.heads import Dense
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.static import StaticTable, static_tokenizer
from bsl.models.errors import EncoderError
from bsl.storage.assets.embedded import embedded_path
from tests.exports import exported
from tests.tiny_encoder import BACK_DE, ORIGINALS

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
        peer = SentenceTransformer(
            modules=[theirs.StaticEmbedding(tokeniser(), embedding_weights=table()), *heads], device="cpu"
        )
        peer.save(str(tmp_path / "theirs"))
        return tmp_path / "theirs", peer.encode(TEXTS)

    return write


@pytest.mark.parametrize(
    "heads", [[], [theirs.Normalize()], [theirs.Dense(WIDTH, 5), theirs.Normalize()]], ids=["bare", "unit", "dense"]
)
def test_load_and_export_match_sentence_transformers_vectors(made, tmp_path, heads):
    folder, expected = made(*heads)
    encoder = SentenceEncoder.load(folder)
    assert np.abs(encoder.encode(TEXTS) - expected).max() <= 1e-5
    exported(encoder, tmp_path / "ours", TEXTS)


def test_static_table_truncates_only_at_a_set_max_length(made, tmp_path):
    folder, _ = made()
    assert SentenceEncoder.load(folder).config.max_length == LONGEST
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="table", max_length=6))
    assert exported(encoder, tmp_path / "ours", TEXTS).config.max_length == 6
    assert np.abs(SentenceEncoder.load(folder).encode(TEXTS) - encoder.encode(TEXTS)).max() > 0.1


def test_static_tokenizer_adds_no_special_tokens(made):
    tokenizer = SentenceEncoder.load(made()[0]).tokenizer
    tokens = token_ids(tokenizer, ["a man", "a man and a dog"], 24)
    assert tokens.lengths.tolist() == [2, 5]


def test_padding_token_is_not_matched_inside_words():
    core = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "[UNK]": 2}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = token_ids(static_tokenizer(core), ["the thecat cat"], 24)
    assert tokens.ids.tolist() == [0, 2, 1]
    assert tokens.pad_id == 0


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
    used = np.unique(tokens.take(rows).ids)
    assert sorted(slope_VD.abs().sum(1).nonzero().flatten().tolist()) == used.tolist()


def test_static_table_built_in_memory_encodes_and_exports(tmp_path):
    config = EncoderConfig(model="own", normalize=True, max_length=LONGEST)
    network = Encoder(StaticTable(table()), config, [], [Dense(WIDTH, 4)]).eval()
    encoder = SentenceEncoder(network, static_tokenizer(tokeniser()))
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(TEXTS), axis=1), 1, atol=1e-6)
    exported(encoder, tmp_path, TEXTS)


@pytest.mark.parametrize(
    ("fields", "heads", "said"),
    [({"pooling": "cls"}, [], "pooling cls and no heads"), ({}, [CNN(WIDTH, 2)], "pooling mean and CNN heads")],
)
def test_export_of_unsupported_table_pooling_or_heads_is_rejected(tmp_path, fields, heads, said):
    encoder = Encoder(StaticTable(table()), EncoderConfig(model="own", **fields), heads)
    with pytest.raises(EncoderError, match=f"a static table with {said}"):
        SentenceEncoder(encoder, static_tokenizer(tokeniser())).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_model2vec_mapping_and_weights_are_applied_on_load(made, tmp_path):
    folder, _ = made()
    rng = np.random.default_rng(0)
    size = tokeniser().get_vocab_size()
    mapping, weights = torch.from_numpy(rng.integers(0, 50, size)), torch.from_numpy(rng.random(size))
    folded = {"embeddings": table()[:50].half(), "mapping": mapping.int(), "weights": weights}
    save_file(folded, folder / "model.safetensors")
    expected = SentenceTransformer(str(folder), device="cpu").float().encode(TEXTS)
    np.testing.assert_allclose(
        SentenceEncoder.load(folder).encode(TEXTS), expected, rtol=0, atol=2e-3
    )  # theirs rounds to fp16
    row = SentenceEncoder.load(folder).network.backbone.embedding.weight[9]
    torch.testing.assert_close(row, (folded["embeddings"][mapping[9]].double() * weights[9]).float())


def test_invalid_static_table_settings_and_files_are_rejected(made):
    folder, _ = made()
    with pytest.raises(EncoderError, match=r"has no dropout, but encoder\.dropout is 0\.1"):
        SentenceEncoder.load(folder, EncoderConfig(model="x", dropout=0.1))
    with pytest.raises(EncoderError, match=r"can only be averaged \(found encoder\.pooling=cls"):
        SentenceEncoder.load(folder, EncoderConfig(model="x", pooling="cls"))
    weights = load_file(folder / "model.safetensors")
    save_file({"embedding.weight": weights["embedding.weight"][:10]}, folder / "model.safetensors")
    with pytest.raises(EncoderError, match=r"ids up to \d+, but the embedding table has only 10 rows"):
        SentenceEncoder.load(folder)
    save_file({"vectors": torch.zeros(3, 3)}, folder / "model.safetensors")
    with pytest.raises(EncoderError, match=r"contains the tensors vectors, expected embedding\.weight or embeddings"):
        SentenceEncoder.load(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"tokenizer\.json: cannot be read as JSON"):
        SentenceEncoder.load(folder)


def test_loading_a_table_draws_no_random_numbers(made):
    folder, _ = made()
    state = torch.get_rng_state()
    SentenceEncoder.load(folder)
    assert torch.equal(torch.get_rng_state(), state)


def test_text_without_tokens_raises_encoder_error(made):
    with pytest.raises(EncoderError, match="text 1 has no token"):
        SentenceEncoder.load(made()[0]).encode(["a man", " "])
