"""Lower case is a step of the tokenizer once, however often an encoder is saved and loaded."""

import json

from models.encoder.config import EncoderConfig
from models.encoder.export import export_sentence_transformers
from models.encoder.loading import load_encoder
from storage.assets.catalog import embedded_path


def steps(tokenizer) -> list[str]:
    own = json.loads(tokenizer.backend_tokenizer.to_str())["normalizer"]
    return [step["type"] for step in own["normalizers"]]


def test_a_load_of_what_was_saved_adds_no_step(tmp_path):
    config = EncoderConfig(model="embedded:bert-mini", lower_case=True)
    encoder, tokenizer = load_encoder(embedded_path("bert-mini"), config)
    assert steps(tokenizer) == ["Lowercase", "BertNormalizer"]
    export_sentence_transformers(encoder, tokenizer, tmp_path / "saved")
    _, again = load_encoder(tmp_path / "saved", config.model_copy(update={"model": str(tmp_path / "saved")}))
    assert steps(again) == steps(tokenizer)
