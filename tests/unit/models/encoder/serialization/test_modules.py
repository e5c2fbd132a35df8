"""Folders with word-embedding tables or a Router give the vectors of sentence-transformers after load and export."""

import ast
import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer import modules as st

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.serialization.modules import roles_not_loaded, without_router
from tests.exports import exported
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


def routed():
    ways = {
        "query": [*words(), st.Pooling(WIDTH, "max")],
        "document": [*words(weighed=True), st.Pooling(WIDTH), st.Dense(WIDTH, 8)],
    }
    return [Router(ways, default_route="document"), st.Normalize()]


CHAINS = {
    "mean": lambda: [*words(), st.Pooling(WIDTH)],
    "lower case, by root of length": lambda: [
        *words(lower=True), st.Pooling(WIDTH, "mean_sqrt_len_tokens"), st.Normalize()
    ],
    "weighed by tf-idf": lambda: [*words(weighed=True), st.Pooling(WIDTH), st.Dense(WIDTH, 8)],
    "dropout": lambda: [*words(), st.Pooling(WIDTH), st.Dropout(0.4), st.Dense(WIDTH, 8)],
    "convolutions of one word": lambda: [*words(), st.CNN(WIDTH, 8, [1, 1]), st.Pooling(16)],
    "default route": routed,
}  # fmt: skip


def saved(folder, name):
    peer = SentenceTransformer(modules=CHAINS[name](), device="cpu").eval()
    peer.save(str(folder))
    return peer


@pytest.mark.parametrize("name", CHAINS)
def test_load_and_export_match_sentence_transformers_vectors(name, tmp_path):
    texts = TEXTS if "convolutions" not in name else TEXTS[:3]  # their CNN counts padding as tokens
    theirs = saved(tmp_path / "theirs", name).encode(texts)
    encoder = SentenceEncoder.load(tmp_path / "theirs")
    assert np.abs(encoder.encode(texts) - theirs).max() <= 1e-5
    exported(encoder, tmp_path / "out", texts)


def test_training_leaves_word_weights_and_the_padding_row_unchanged(tmp_path):
    saved(tmp_path, "weighed by tf-idf")
    encoder = SentenceEncoder.load(tmp_path)
    network = encoder.network
    before = {name: tensor.clone() for name, tensor in network.backbone.state_dict().items()}
    tokens = torch.tensor([[1, 2, encoder.tokenizer.pad_token_id]])
    network(tokens, torch.ones_like(tokens)).sum().backward()
    torch.optim.SGD(network.parameters(), lr=1.0).step()
    moved = {name: tensor != before[name] for name, tensor in network.backbone.state_dict().items()}
    assert not moved["weights"].any()
    assert moved["embedding.weight"].any(dim=1).nonzero().flatten().tolist() == [1, 2]


def test_dropout_is_active_only_in_training_mode(tmp_path):
    saved(tmp_path, "dropout")
    network = SentenceEncoder.load(tmp_path).network
    assert network.has_dropout
    tokens = torch.tensor([[1, 2]])
    first, second = (network.train()(tokens, torch.ones_like(tokens)) for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("parameters", "way"),
    [
        ({}, "text"),
        ({"route_mappings": {"(None, None)": "query"}}, "query"),
        ({"route_mappings": {"(None, 'text')": "query", "(None, None)": "text"}}, "query"),
        ({"route_mappings": {"('query', 'text')": "query"}}, "text"),
        ({"default_route": "query"}, "text"),
    ],
)
def test_plain_text_route_matches_sentence_transformers(tmp_path, parameters, way):
    kind = "sentence_transformers.models.StaticEmbedding"
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "router_config.json").write_text(
        json.dumps({
            "structure": {"query": ["query"], "text": ["text"]},
            "types": {"query": kind, "text": kind},
            "parameters": parameters,
        })
    )  # fmt: skip
    listed = [{"type": "sentence_transformers.base.modules.router.Router", "path": "r"}]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    assert list(without_router(listed, tmp_path)) == [{"type": kind, "path": f"r/{way}"}]
    mapped = {ast.literal_eval(key): other for key, other in parameters.get("route_mappings", {}).items()}
    peer = Router({"query": [st.Normalize()], "text": [st.Dropout()]}, parameters.get("default_route"), True, mapped)
    assert peer._resolve_route(None, "text") == way
    others = [role for role in ("query", "document") if peer._resolve_route(role, "text") != way]
    assert list(roles_not_loaded(tmp_path)) == others
