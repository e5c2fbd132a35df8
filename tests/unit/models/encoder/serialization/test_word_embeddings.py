"""Word-embedding tables of sentence-transformers, weighted or not, give its vectors after load and save."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError, NoEmbeddingError
from tests.exports import exported
from tests.folder_config import saved_config
from tests.tiny_words import WIDTH, words

TEXTS = [
    "A man is in the street.",
    "a Dog, (a dog) on the woman!",
    "The THE the",
    "zebra",
    "",
    "  \t ",
    "'dog' dog's ... . --",
    "a man and a dog " * 40,
]
CHAINS = {
    "mean (average_word_embeddings)": lambda: [*words(), st.Pooling(WIDTH)],
    "in lower case, by root of length": lambda: [
        *words(lower=True),
        st.Pooling(WIDTH, "mean_sqrt_len_tokens"),
        st.Normalize(),
    ],
    "weighed by tf-idf": lambda: [*words(weighed=True), st.Pooling(WIDTH), st.Dense(WIDTH, 8)],
    "dropout": lambda: [*words(), st.Pooling(WIDTH), st.Dropout(0.4), st.Dense(WIDTH, 8)],
    "convolutions of one word": lambda: [*words(), st.CNN(WIDTH, 8, [1, 1]), st.Pooling(16)],
}


def saved(folder, chain):
    peer = SentenceTransformer(modules=chain, device="cpu").eval()
    peer.save(str(folder))
    return peer


@pytest.mark.parametrize("name", CHAINS)
def test_load_and_export_match_sentence_transformers_vectors(name, tmp_path):
    texts = TEXTS if "convolutions" not in name else TEXTS[:3]  # their CNN counts padding as tokens
    theirs = saved(tmp_path / "theirs", CHAINS[name]()).encode(texts)
    encoder = SentenceEncoder.load(tmp_path / "theirs")
    assert np.abs(encoder.encode(texts) - theirs).max() <= 1e-5
    exported(encoder, tmp_path / "out", texts)


def test_training_leaves_word_weights_and_the_padding_row_unchanged(tmp_path):
    saved(tmp_path, [*words(weighed=True), st.Pooling(WIDTH)])
    encoder = SentenceEncoder.load(tmp_path)
    before = {name: tensor.clone() for name, tensor in encoder.network.backbone.state_dict().items()}
    tokens = torch.tensor([[1, 2, encoder.tokenizer.pad_token_id]])
    encoder.network(tokens, torch.ones_like(tokens)).sum().backward()
    torch.optim.SGD(encoder.network.parameters(), lr=1.0).step()
    moved = {name: tensor != before[name] for name, tensor in encoder.network.backbone.state_dict().items()}
    assert not moved["weights"].any()
    assert moved["embedding.weight"].any(dim=1).nonzero().flatten().tolist() == [1, 2]


def test_dropout_is_active_only_in_training_mode(tmp_path):
    saved(tmp_path, CHAINS["dropout"]())
    encoder = SentenceEncoder.load(tmp_path)
    assert encoder.network.has_dropout
    tokens = torch.tensor([[1, 2, encoder.tokenizer.pad_token_id]])
    first, second = (encoder.network.train()(tokens, torch.ones_like(tokens)) for _ in range(2))
    assert not torch.equal(first, second)


def test_none_or_lone_surrogate_text_is_rejected(tmp_path):
    saved(tmp_path, CHAINS["mean (average_word_embeddings)"]())
    for bad, told in ((None, "is None, expected a string"), ("\ud800", "contains half of a character")):
        with pytest.raises(NoEmbeddingError, match=told):
            SentenceEncoder.load(tmp_path).encode(["a man", bad])


def change(folder, pattern, settings):
    (path,) = folder.glob(pattern)
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


@pytest.mark.parametrize(
    ("pattern", "settings", "told"),
    [
        ("white*.json", {"vocab": list("abcdefghijklmnop")}, "16 words and a table of 15 rows"),
        ("2_*/config.json", {"pooling_mode": "max"}, "word weights with 0 heads on token vectors and pooling max"),
        ("word*.json", {"tokenizer_class": "sentence_transformers.models.tokenizer.PhraseTokenizer"},
         "tokenizer PhraseTokenizer, expected WhitespaceTokenizer"),
    ],
)  # fmt: skip
def test_inconsistent_or_unsupported_word_table_is_rejected(tmp_path, pattern, settings, told):
    saved(tmp_path, [*words(weighed=True), st.Pooling(WIDTH)])
    change(tmp_path, pattern, settings)
    with pytest.raises(EncoderError, match=told):
        SentenceEncoder.load(tmp_path)


def test_dropout_setting_for_a_word_table_is_rejected(tmp_path):
    saved(tmp_path, CHAINS["dropout"]())
    with pytest.raises(EncoderError, match=r"has no dropout, but encoder\.dropout is 0\.1"):
        SentenceEncoder.load(tmp_path, saved_config(tmp_path, "x").model_copy(update={"dropout": 0.1}))


@pytest.mark.parametrize(
    ("kind", "reason"), [("BoW", "one dimension per word .* TF-IDF"), ("LSTM", "recurrent network; train a CNN")]
)
def test_unsupported_modules_are_rejected_with_the_reason(tmp_path, kind, reason):
    saved(tmp_path, [*words(), st.Pooling(WIDTH)])
    listed = json.loads((tmp_path / "modules.json").read_text())
    listed.insert(1, {"idx": 1, "name": "1", "path": "", "type": f"sentence_transformers.models.{kind}"})
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(EncoderError, match=f"unsupported module: {kind} .*{reason}"):
        SentenceEncoder.load(tmp_path)
