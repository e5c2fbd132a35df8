"""Prompts of queries, documents and single calls give the vectors of sentence-transformers."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

from bsl import SentenceEncoder
from bsl.models.errors import EncoderError
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.serving.search import index
from tests.layouts import NAMED, TEXTS, opened, prompted, write


@pytest.mark.parametrize("pools", [True, False])
@pytest.mark.parametrize("prompts", [{"query": "query: "}, {"document": "title: none | "}])
def test_prompts_of_queries_and_documents_are_those_of_sentence_transformers(tmp_path, prompts, pools):
    files = prompted("sts", include_prompt=pools)
    known = {**NAMED, "query": "", **prompts}
    files["config_sentence_transformers.json"] = {"prompts": known, "default_prompt_name": "sts"}
    folder = write(tmp_path / "encoder", files)
    ours, peer = SentenceEncoder.load(folder), opened(folder)
    with torch.no_grad():
        calls = [
            (ours.encode_query(TEXTS), peer.encode_query(TEXTS)),
            (ours.encode_document(TEXTS), peer.encode_document(TEXTS)),
            (ours.encode(TEXTS), peer.encode(TEXTS)),
            (ours.encode(TEXTS, "sts"), peer.encode(TEXTS, "sts")),
            (ours.encode(TEXTS[0], prompt=""), peer.encode(TEXTS[0], prompt="")),
            (ours.encode_query(TEXTS, prompt="the "), peer.encode_query(TEXTS, prompt="the ")),
        ]
    for found, wanted in calls:
        assert np.abs(found - wanted).max() <= 1e-5
    with pytest.raises(ValueError, match="prompt_name is 'qury', expected one of the encoder's prompts"):
        ours.encode(TEXTS, prompt_name="qury")
    with pytest.raises(TypeError, match="prompt is 5, expected a text"):
        ours.encode(TEXTS, prompt=5)
    with pytest.raises(ValueError, match="give only one of them"):
        ours.encode(TEXTS, prompt_name="sts", prompt="the ")


def test_prompt_that_is_not_pooled_is_not_pooled_either_after_saving_without_one(tmp_path):
    """Regression: `include_prompt` was only saved with a prompt in use."""
    files = prompted(None, include_prompt=False)
    encoder = SentenceEncoder.load(write(tmp_path / "encoder", files))
    encoder.save(tmp_path / "saved")
    wanted = encoder.encode(TEXTS, prompt_name="sts")
    assert np.abs(opened(tmp_path / "saved").encode(TEXTS, "sts") - wanted).max() <= 1e-5


@pytest.mark.parametrize("name", ["passage", "corpus"])
def test_prompt_of_documents_may_have_other_names(tmp_path, name):
    """The library documents these names, and finds its own empty prompt `document` before them (6.2)."""
    files = prompted(None)
    files["config_sentence_transformers.json"] = {"prompts": {"query": "query: ", name: "passage: "}}
    folder = write(tmp_path / "encoder", files)
    wanted = opened(folder).encode(TEXTS, name)
    assert np.abs(SentenceEncoder.load(folder).encode_document(TEXTS) - wanted).max() <= 1e-5


def test_queries_with_modules_of_their_own_are_refused(site, tmp_path):
    tower = modules.Transformer(str(write(tmp_path / "tower", prompted(None))))
    routes = {name: [tower, modules.Pooling(32, mode)] for name, mode in (("query", "cls"), ("document", "mean"))}
    peer = SentenceTransformer(modules=[modules.Router(routes, "document")], device="cpu")
    peer.save(str(tmp_path / "routed"))
    encoder = SentenceEncoder.load(tmp_path / "routed")
    assert np.abs(encoder.encode_document(TEXTS) - peer.encode_document(TEXTS)).max() <= 1e-5
    (tmp_path / "in.txt").write_text("\n".join(TEXTS))
    corpus = SourceSpec(path=str(tmp_path / "in.txt"))
    for ask in (
        lambda: encoder.encode_query(TEXTS),
        lambda: encoder.with_prompt("the ").encode_query(TEXTS),
        lambda: index(site, str(tmp_path / "routed"), corpus, "fp32", answers_queries=True),
    ):
        with pytest.raises(
            EncoderError, match=r"routed: a Router has other modules for texts of the task query.*bsl export"
        ):
            ask()
    encoder.save(tmp_path / "exported")
    again = SentenceEncoder.load(tmp_path / "exported")
    assert np.abs(again.encode_query(TEXTS) - peer.encode_document(TEXTS)).max() <= 1e-5


def test_default_prompt_is_that_of_queries_and_documents_if_neither_has_one(tmp_path):
    files = prompted("sts")
    files["config_sentence_transformers.json"] = {"prompts": {"sts": NAMED["sts"]}, "default_prompt_name": "sts"}
    encoder = SentenceEncoder.load(write(tmp_path / "encoder", files))
    for vectors in (encoder.encode_query(TEXTS), encoder.encode_document(TEXTS)):
        np.testing.assert_array_equal(vectors, encoder.encode(TEXTS))
