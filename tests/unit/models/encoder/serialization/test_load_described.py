"""A sentence-transformers folder gives the vectors of SentenceTransformer, or is refused."""

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from bsl.models.encoder.config import DEFAULT_LENGTH, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from tests.folder_config import saved_config
from tests.tiny_encoder import BACK_DE, ORIGINALS, write_tiny

TEXTS = [*ORIGINALS, *BACK_DE, " A Man  is PLAYING a guitar. " * 8]


def exported(tmp_path, **fields):
    config = EncoderConfig(model="tiny", **fields)
    SentenceEncoder.load(write_tiny(tmp_path / "bare"), config).save(tmp_path / "made")
    return tmp_path / "made"


@pytest.mark.parametrize("resaved", [False, True], ids=["format 2 to 5", "format 6"])
@pytest.mark.parametrize(
    "fields",
    [
        {"pooling": "mean", "max_length": 24},
        {"pooling": "cls", "max_length": 12, "normalize": True},
        {"pooling": "mean", "max_length": 16, "lower_case": True},
    ],
    ids=str,
)
def test_vectors_equal_sentence_transformers(tmp_path, fields, resaved):
    folder = exported(tmp_path, **fields)
    peer = SentenceTransformer(str(folder), device="cpu")
    if resaved:
        folder = tmp_path / "again"
        peer.save(str(folder))
    config = saved_config(folder, "tiny")
    assert (config.pooling, config.max_length, config.normalize) == (
        fields["pooling"], fields["max_length"], fields.get("normalize", False),
    )  # fmt: skip
    assert np.abs(SentenceEncoder.load(folder, config).encode(TEXTS) - peer.encode(TEXTS)).max() < 1e-6


def test_missing_max_length_defaults_to_the_tokenizer_limit(tmp_path):
    folder = exported(tmp_path, max_length=24)
    (folder / "sentence_bert_config.json").write_text("{}")
    peer = SentenceTransformer(str(folder), device="cpu")
    config = saved_config(folder, "tiny")
    assert config.max_length == peer.max_seq_length == 64


def test_bare_transformer_gets_the_default_settings(tmp_path):
    config = saved_config(write_tiny(tmp_path / "bare"), "tiny")
    assert config == EncoderConfig(model="tiny", max_length=DEFAULT_LENGTH, prompt="")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode": "median"}, "unknown pooling median, expected cls, max, mean, "),
        (
            "1_Pooling/config.json",
            {"pooling_mode_median_tokens": True},
            "the setting pooling_mode_median_tokens is unknown",
        ),
        ("modules.json", [{"path": "", "type": "x.Transformer"}, {"path": "2", "type": "x.Dense"}], "Dense"),
    ],
)
def test_unsupported_pooling_or_modules_raise_encoder_error(tmp_path, file, content, message):
    folder = exported(tmp_path, max_length=24)
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(EncoderError, match=message):
        saved_config(folder, "tiny")


def test_invalid_modules_json_error_names_the_file(tmp_path):
    folder = exported(tmp_path, max_length=24)
    (folder / "modules.json").write_text("[")
    with pytest.raises(EncoderError, match=r"modules.json: cannot be read as JSON"):
        saved_config(folder, "tiny")
