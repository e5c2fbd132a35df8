"""A folder with a Router is read by the route that sentence-transformers takes for a plain text."""

import ast
import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer import modules as st

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.serialization.modules import without_router
from bsl.models.errors import EncoderError
from tests.exports import exported
from tests.folder_config import saved_config
from tests.tiny_words import WIDTH, words

TEXTS = ["A man is in the street.", "a dog and a woman", "zebra"]
LISTED = [{"type": "sentence_transformers.base.modules.router.Router", "path": "r"}]


def test_router_vectors_match_the_default_route_of_sentence_transformers(tmp_path):
    ways = {
        "query": [*words(), st.Pooling(WIDTH, "max")],
        "document": [*words(weighed=True), st.Pooling(WIDTH), st.Dense(WIDTH, 8)],
    }
    peer = SentenceTransformer(modules=[Router(ways, default_route="document"), st.Normalize()], device="cpu")
    peer.save(str(tmp_path / "theirs"))
    encoder = SentenceEncoder.load(tmp_path / "theirs")
    assert np.abs(encoder.encode(TEXTS) - peer.encode(TEXTS)).max() <= 1e-5
    exported(encoder, tmp_path / "out", TEXTS)


def write(folder, ways=("query", "text"), **parameters):
    types = dict.fromkeys(ways, "sentence_transformers.models.StaticEmbedding")
    settings = {"structure": {way: [way] for way in ways}, "types": types, "parameters": parameters}
    (folder / "r").mkdir()
    (folder / "r" / "router_config.json").write_text(json.dumps(settings))


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
    write(tmp_path, **parameters)
    assert list(without_router(LISTED, tmp_path)) == [
        {"type": "sentence_transformers.models.StaticEmbedding", "path": f"r/{way}"}
    ]
    mapped = {ast.literal_eval(key): other for key, other in parameters.get("route_mappings", {}).items()}
    peer = Router({"query": [st.Normalize()], "text": [st.Dropout()]}, parameters.get("default_route"), True, mapped)
    assert peer._resolve_route(None, "text") == way


def test_router_without_a_default_route_is_rejected(tmp_path):
    write(tmp_path, ("query", "document"), allow_empty_key=False)
    with pytest.raises(EncoderError, match="selects query or document by task, and has no default route"):
        list(without_router(LISTED, tmp_path))


def test_custom_code_or_outside_folder_in_router_is_rejected(tmp_path):
    write(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps(LISTED))
    path = tmp_path / "r" / "router_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"types": {"text": "theirs.Transformer", "query": ""}}))
    with pytest.raises(EncoderError, match=r"theirs\.Transformer is custom code, which is never run"):
        saved_config(tmp_path, "x")
    path.write_text(json.dumps(settings | {"structure": {"text": ["../../text"]}, "types": {"../../text": "x.y"}}))
    with pytest.raises(EncoderError, match="names folders outside it"):
        saved_config(tmp_path, "x")
