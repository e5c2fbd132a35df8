"""Pooling by the first token through the checkpoint's own pooler (SimCSE's `cls`), never a new one."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer, RobertaConfig, RobertaModel

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from tests.exports import exported
from tests.tiny_encoder import ORIGINALS, write_tiny


def config(folder, **changes):
    return EncoderConfig(**{"model": str(folder), "pooling": "cls-pooler", "max_length": 24, **changes})


def test_cls_pooler_vectors_equal_transformers_pooler_output(tmp_path):
    folder = write_tiny(tmp_path)
    ours = SentenceEncoder.load(folder, config(folder)).encode(ORIGINALS)
    theirs, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        pooled = theirs(**tokenizer(ORIGINALS, padding=True, return_tensors="pt")).pooler_output.numpy()
    np.testing.assert_allclose(ours, pooled, atol=1e-5)
    plain = SentenceEncoder.load(folder, config(folder, pooling="cls")).encode(ORIGINALS)
    assert abs(ours - plain).max() > 0.1


def test_roberta_loads_with_its_pooler(tmp_path):
    folder = write_tiny(tmp_path)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    RobertaModel(RobertaConfig(vocab_size=64, max_position_embeddings=66, pad_token_id=0, **shape)).save_pretrained(
        folder
    )
    encoder = SentenceEncoder.load(folder, config(folder)).network
    assert encoder.width == 32
    assert len(encoder.sentence_heads) == 1


def test_exported_pooler_loads_with_default_or_cls_pooler_config(tmp_path):
    folder = write_tiny(tmp_path / "in")
    encoder = SentenceEncoder.load(folder, config(folder))
    again = exported(encoder, tmp_path / "out", ORIGINALS)
    asked = SentenceEncoder.load(tmp_path / "out", config(tmp_path / "out"))
    assert len(again.network.sentence_heads) == len(asked.network.sentence_heads) == 1
    np.testing.assert_array_equal(asked.encode(ORIGINALS), encoder.encode(ORIGINALS))


def test_cls_pooler_is_rejected_without_pooler_weights(tmp_path):
    folder = write_tiny(tmp_path)
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "pooler" not in name}
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    assert isinstance(SentenceEncoder.load(folder, config(folder, pooling="cls")).network, Encoder)
    with pytest.raises(EncoderError, match=r"2 weights are missing \(first: \['pooler.dense.bias'"):
        SentenceEncoder.load(folder, config(folder))


def test_cls_pooler_is_rejected_for_modernbert_and_cls_folders(tmp_path):
    folder = write_tiny(tmp_path / "modern", "modernbert")
    with pytest.raises(EncoderError, match="needs a pooler with a dense layer and tanh, which this modernbert lacks"):
        SentenceEncoder.load(folder, config(folder))
    bert = write_tiny(tmp_path / "bert")
    SentenceEncoder.load(bert, config(bert, pooling="cls")).save(tmp_path / "cls")
    with pytest.raises(EncoderError, match=r"needs a trained pooler \(found the identity"):
        SentenceEncoder.load(tmp_path / "cls", config(tmp_path / "cls"))
