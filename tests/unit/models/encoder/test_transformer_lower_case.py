"""Repeated saving and loading adds only one lower-case step to the tokenizer."""

import json

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.storage.assets.embedded import embedded_path


def steps(tokenizer) -> list[str]:
    own = json.loads(tokenizer.backend_tokenizer.to_str())["normalizer"]
    return [step["type"] for step in own["normalizers"]]


def test_reloading_does_not_add_a_second_lower_case_step(tmp_path):
    config = EncoderConfig(model="embedded:bert-mini", lower_case=True)
    encoder = SentenceEncoder.load(embedded_path("bert-mini"), config)
    assert steps(encoder.tokenizer) == ["Lowercase", "BertNormalizer"]
    encoder.save(tmp_path / "saved")
    again = SentenceEncoder.load(
        tmp_path / "saved", config.model_copy(update={"model": str(tmp_path / "saved")})
    ).tokenizer
    assert steps(again) == steps(encoder.tokenizer)
