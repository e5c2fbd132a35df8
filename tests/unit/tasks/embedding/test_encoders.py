"""A starting encoder is read by the settings of its folder; contradicting settings are refused before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from flows.adaptation import run_adapt
from flows.recipes.adaptation import AdaptConfig
from flows.sweep.method_runs import inapplicable, start_encoder_of
from flows.sweep.method_settings import FieldSettings
from flows.sweep.methods import METHODS
from models.encoder.config import EncoderConfig
from models.encoder.sentence_encoder import SentenceEncoder
from models.errors import EncoderError
from tasks.embedding.encoders import can_drop, check_learns, is_bare, resolve_encoder, with_saved_settings
from tasks.stage.run_context import RunContext
from tests.tiny_encoder import write_tiny
from tests.tiny_words import WIDTH, words

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save an encoder with [CLS] pooling and normalization."""
    config = EncoderConfig(model=str(write_tiny(tmp_path / "raw")), pooling="cls", normalize=True)
    encoder = SentenceEncoder.load(tmp_path / "raw", config)
    encoder.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_unset_encoder_settings_come_from_the_saved_folder(saved: Path, tmp_path: Path) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    start, named = resolve_encoder(site, EncoderConfig(model=str(saved)))
    settled = with_saved_settings(site, start, named)
    assert (settled.pooling, settled.normalize) == ("cls", True)
    assert not is_bare(site, start)


def test_onnx_model_uses_start_and_pooling_of_its_folder(saved: Path, tmp_path: Path) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    for folder in (tmp_path / "raw", saved):
        (folder / "model.onnx").touch()
        alone, graph = (start_encoder_of(site, str(place)) for place in (folder, folder / "model.onnx"))
        assert (graph.start, graph.config.pooling) == (alone.start, alone.config.pooling)


def test_word_vector_encoder_rejects_dropout_methods(saved: Path, tmp_path: Path) -> None:
    SentenceTransformer(modules=[*words(), Pooling(WIDTH)], device="cpu").save(str(tmp_path / "words"))
    site = RunContext(store=str(tmp_path / "store"))
    starts = [resolve_encoder(site, EncoderConfig(model=str(tmp_path / name)))[0] for name in ("raw", "saved", "words")]
    assert [can_drop(site, start) for start in starts] == [True, True, False]
    table = start_encoder_of(site, str(tmp_path / "words"))
    named = {method.name for method in METHODS if "dropout" in method.encoder}
    assert {"simcse", "bsl"} <= named == {*inapplicable(METHODS, table, FieldSettings())}
    text = tmp_path / "own.txt"
    text.write_text("It has rained for days.\n")
    with pytest.raises(
        EncoderError, match=r"words: --views dropout needs a transformer .found a table of word vectors"
    ):
        run_adapt([str(text)], str(tmp_path / "words"), None, AdaptConfig(views="dropout"), site)


def test_setting_that_contradicts_the_saved_folder_is_refused(saved: Path, tmp_path: Path) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    start, named = resolve_encoder(site, EncoderConfig(model=str(saved), pooling="max"))
    with pytest.raises(EncoderError, match=r'encoder\.pooling="cls"'):
        with_saved_settings(site, start, named)


def test_bare_transformer_uses_the_configured_settings(tmp_path: Path) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    folder = write_tiny(tmp_path / "raw")
    start, named = resolve_encoder(site, EncoderConfig(model=str(folder), pooling="max"))
    assert with_saved_settings(site, start, named) == named
    assert is_bare(site, start)


@pytest.mark.parametrize("named", ["onnx/model.onnx", "."], ids=["by its path", "alone in its folder"])
def test_onnx_model_uses_saved_settings_and_cannot_be_trained(saved: Path, tmp_path: Path, named: str) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    (saved / "onnx").mkdir()
    (saved / "onnx" / "model.onnx").write_bytes(b"")
    weights, _ = resolve_encoder(site, EncoderConfig(model=str(saved)))
    check_learns(weights)
    (saved / "model.safetensors").rename(tmp_path / "away.safetensors")
    start, given = resolve_encoder(site, EncoderConfig(model=str(saved / named)))
    assert with_saved_settings(site, start, given).pooling == "cls"
    with pytest.raises(EncoderError, match=r"no gradients \(expected weights to train"):
        check_learns(start)
