"""The ONNX graph gives the vectors of the encoder, pooled inside, for any number and length of rows."""

import sys

import numpy as np
import pytest

from models.encoder.encode import encode
from models.encoder.onnx import export_onnx
from models.errors import EncoderError
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder

TEXTS = [*ORIGINALS, *BACK_DE, "a man is playing " * 20, "x"]


@pytest.mark.parametrize(
    ("architecture", "pooling", "normalize"), [("bert", "first-last", True), ("modernbert", "mean", False)]
)
def test_parity(tmp_path, architecture, pooling, normalize):
    onnxruntime = pytest.importorskip("onnxruntime")
    encoder, tokenizer = tiny_encoder(tmp_path / "in", architecture, pooling=pooling)
    encoder.config = encoder.config.model_copy(update={"normalize": normalize})
    export_onnx(encoder, tmp_path / "encoder.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "encoder.onnx"))
    for texts in (TEXTS, TEXTS[:1], TEXTS[8:]):
        call = tokenizer(texts, padding=True, truncation=True, max_length=24, return_tensors="np")
        (found,) = session.run(["sentence_embedding"], {name: call[name] for name in ("input_ids", "attention_mask")})
        assert found.shape == (len(texts), encoder.width)
        assert np.abs(found - encode(encoder, tokenizer, texts)).max() <= 1e-5
    assert encoder.backbone.config._attn_implementation != "eager"  # put back as it was


def test_without_the_extra_the_message_says_what_to_install(tmp_path, monkeypatch):
    encoder, _ = tiny_encoder(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(EncoderError, match=r"pip install 'bsl-pipeline\[onnx\]'"):
        export_onnx(encoder, tmp_path / "encoder.onnx")
