"""Prompts of queries, documents and single calls give the vectors of sentence-transformers."""

import numpy as np
import pytest
import torch

from bsl import SentenceEncoder
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


def test_default_prompt_is_that_of_queries_and_documents_if_neither_has_one(tmp_path):
    files = prompted("sts")
    files["config_sentence_transformers.json"] = {"prompts": {"sts": NAMED["sts"]}, "default_prompt_name": "sts"}
    encoder = SentenceEncoder.load(write(tmp_path / "encoder", files))
    for vectors in (encoder.encode_query(TEXTS), encoder.encode_document(TEXTS)):
        np.testing.assert_array_equal(vectors, encoder.encode(TEXTS))
