"""Settings of a sentence-transformers folder are read and checked against the configuration."""

import json

import pytest
import torch
from safetensors.torch import save_file

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.models.errors import EncoderError
from tests.folder_config import saved_config
from tests.tiny_encoder import ORIGINALS, tiny_encoder, write_tiny


def config(**changes):
    return EncoderConfig(**{"model": "x", "max_length": 24, **changes})


@pytest.fixture
def exported(tmp_path):
    def write(**changes):
        encoder, tokenizer = tiny_encoder(tmp_path / "in")
        encoder = Encoder(encoder.backbone, encoder.config.model_copy(update=changes))
        SentenceEncoder(encoder, tokenizer).save(tmp_path / "out")
        return tmp_path / "out", SentenceEncoder(encoder, tokenizer).encode(ORIGINALS)

    return write


def rewrite(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"pooling": "cls"}, "encoder.pooling is cls, but the encoder was saved with mean. Unset it"),
        ({"normalize": True}, "encoder.normalize is True, but the encoder was saved with False. Unset it"),
    ],
)
def test_given_setting_wins_over_the_saved_one_with_a_warning(exported, caplog, asked, told):
    folder, vectors = exported()
    encoder = SentenceEncoder.load(folder, config(**asked))
    (name, value), *_ = asked.items()
    assert getattr(encoder.config, name) == value
    assert abs(encoder.encode(ORIGINALS) - vectors).max() > 0.01
    assert told in caplog.text


def test_settings_that_are_not_given_are_those_of_the_folder(exported, caplog):
    """Regression: `load(folder, max_length=24)` raised an error for a folder with a module Normalize."""
    folder, vectors = exported(normalize=True, pooling="cls")
    encoder = SentenceEncoder.load(folder, config(max_length=24))
    assert (encoder.config.pooling, encoder.config.normalize) == ("cls", True)
    assert abs(encoder.encode(ORIGINALS) - vectors).max() < 1e-6
    plain = SentenceEncoder.load(folder, config(normalize=False))
    assert abs(plain.encode(ORIGINALS) - SentenceEncoder.load(folder).encode(ORIGINALS)).max() > 0.01
    assert caplog.text.count("saved with") == 1


def test_bare_transformer_has_no_saved_settings(tmp_path):
    saved = read_saved(write_tiny(tmp_path))
    assert (saved.pooling, saved.normalize, saved.max_length) == (None, None, None)


def test_old_and_new_layouts_are_read(exported):
    """Old models have the transformer in a subfolder; version 5 writes a single `pooling_mode`."""
    folder, vectors = exported()
    inner = folder / "0_Transformer"
    inner.mkdir()
    for file in [path for path in folder.iterdir() if path.is_file() and path.name != "modules.json"]:
        file.rename(inner / file.name)
    rewrite(folder / "modules.json", lambda modules: [{**modules[0], "path": "0_Transformer"}, *modules[1:]])
    rewrite(folder / "1_Pooling" / "config.json", lambda _: {"embedding_dimension": 32, "pooling_mode": "mean"})
    assert saved_config(folder, "x").pooling == "mean"
    assert abs(SentenceEncoder.load(folder, config()).encode(ORIGINALS) - vectors).max() == 0


def test_unknown_module_error_names_the_module(exported):
    folder, _ = exported()
    other = {"idx": 2, "name": "2", "path": "2_MLMHead", "type": "sentence_transformers.models.MLMHead"}
    rewrite(folder / "modules.json", lambda modules: [*modules, other])
    with pytest.raises(
        EncoderError,
        match="modules Transformer → Pooling → MLMHead: unknown module MLMHead",
    ):
        SentenceEncoder.load(folder, config())


def test_layer_weights_other_than_first_and_last_are_refused(exported):
    folder, _ = exported(pooling="first-last")
    save_file({"layer_weights": torch.tensor([1.0, 2.0])}, folder / "1_WeightedLayerPooling" / "model.safetensors")
    with pytest.raises(EncoderError, match=r"layer weights \[1\.0, 2\.0\] from layer 1"):
        read_saved(folder)


def test_word_weights_that_change_later_tokens_are_rejected(exported):
    folder, _ = exported(pooling="mean-after-first")
    settings = folder / "1_WordWeights" / "config.json"
    rewrite(settings, lambda saved: {**saved, "word_weights": {**saved["word_weights"], saved["vocab"][7]: 0.5}})
    with pytest.raises(EncoderError, match=r"2 of \d+ tokens have another weight than 1 \(pooling mean\)"):
        read_saved(folder)


def test_configured_dropout_replaces_the_saved_dropout(tmp_path):
    folder = write_tiny(tmp_path, "modernbert")
    assert not SentenceEncoder.load(folder, config()).network.has_dropout
    assert SentenceEncoder.load(folder, config(dropout=0.2)).network.has_dropout
    assert not SentenceEncoder.load(write_tiny(tmp_path / "bert"), config(dropout=0.0)).network.has_dropout


@pytest.mark.parametrize(("asked", "length"), [(None, 24), (24, 24), (12, 12)])
def test_saved_max_length_is_the_default_and_overrides_warn(exported, caplog, asked, length):
    folder, _ = exported()
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=asked)).network
    assert encoder.config.max_length == encoder.config.length == length
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [message.partition(": ")[2] for message in warned] == (
        ["saved with a maximal length of 24 tokens, but encoder.max_length is 12. Unset it to use the saved length."]
        if asked == 12
        else []
    )


def test_bare_transformer_max_length_defaults_to_64(tmp_path):
    encoder = SentenceEncoder.load(write_tiny(tmp_path), EncoderConfig(model="x"))
    assert encoder.config.max_length == 64
    assert len(encoder.tokenizer("man " * 99)["input_ids"]) == 101  # the encoder truncates, not the tokenizer
    assert token_ids(encoder.tokenizer, ["man " * 99], encoder.config.length).lengths.tolist() == [64]


@pytest.mark.parametrize(("pooling", "reduced"), [("second-to-last", "mean"), ("second-to-last-cls", "cls")])
def test_second_to_last_pooling_equals_removing_the_last_layer(tmp_path, pooling, reduced):
    encoder, tokenizer = tiny_encoder(tmp_path, pooling=pooling)
    expected, _ = tiny_encoder(tmp_path, pooling=reduced)
    expected.backbone.encoder.layer = expected.backbone.encoder.layer[:-1]
    difference = SentenceEncoder(encoder, tokenizer).encode(ORIGINALS) - SentenceEncoder(expected, tokenizer).encode(
        ORIGINALS
    )
    assert abs(difference).max() < 1e-6
