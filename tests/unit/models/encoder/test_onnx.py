"""The exported ONNX graph gives the pooled vectors of the encoder, for any batch size and length."""

import sys

import numpy as np
import pytest
import torch

from bsl.models.encoder.cnn import CNN
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.heads import Dense
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.static import StaticTable, static_tokenizer
from bsl.models.errors import EncoderError
from bsl.models.serving.onnx_export import export_onnx
from tests.tiny_encoder import BACK_DE, ORIGINALS, WIDTH, tiny_encoder

TEXTS = [*ORIGINALS, *BACK_DE, "a man is playing " * 20, "x"]


@pytest.mark.parametrize(
    ("architecture", "pooling", "normalize", "heads"),
    [
        ("bert", "first-last", True, lambda: ([CNN(WIDTH, 6)], [Dense(18, 7)])),
        pytest.param("modernbert", "mean", False, lambda: ([], []), marks=pytest.mark.slow),
    ],
    ids=["bert, CNN, first-last, Dense, Normalize", "modernbert, mean"],
)
def test_onnx_graph_of_a_transformer_matches_encoder_vectors(tmp_path, architecture, pooling, normalize, heads):
    bare, tokenizer = tiny_encoder(tmp_path / "in", architecture)
    config = bare.config.model_copy(update={"pooling": pooling, "normalize": normalize})
    check(Encoder(bare.backbone, config, *heads()).eval(), tokenizer, tmp_path)


def check(encoder, tokenizer, folder):
    onnxruntime = pytest.importorskip("onnxruntime")
    before = getattr(encoder.backbone.config, "_attn_implementation", None)  # a table has none
    export_onnx(encoder, folder / "encoder.onnx")
    assert getattr(encoder.backbone.config, "_attn_implementation", None) == before
    session = onnxruntime.InferenceSession(str(folder / "encoder.onnx"))
    for texts in (TEXTS, TEXTS[:1], TEXTS[8:]):
        call = tokenizer(texts, padding=True, truncation=True, max_length=24, return_tensors="np")
        (found,) = session.run(["sentence_embedding"], {name: call[name] for name in ("input_ids", "attention_mask")})
        assert found.shape == (len(texts), encoder.width)
        assert np.abs(found - SentenceEncoder(encoder, tokenizer).encode(texts)).max() <= 1e-5


def test_onnx_graph_of_a_static_table_matches_encoder_vectors(tmp_path):
    _, tokenizer = tiny_encoder(tmp_path)
    tokenizer = static_tokenizer(tokenizer.backend_tokenizer)
    config = EncoderConfig(model="table", max_length=24)
    check(Encoder(StaticTable(torch.randn(len(tokenizer), 5)), config, [], [Dense(5, 4)]).eval(), tokenizer, tmp_path)


def test_missing_onnx_extra_error_names_the_install_command(tmp_path, monkeypatch):
    encoder, _ = tiny_encoder(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(EncoderError, match=r"pip install 'bsl-pipeline\[onnx\]'"):
        export_onnx(encoder, tmp_path / "encoder.onnx")
