"""A starting encoder is read by the settings of its folder, except for those that somebody set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from bsl.flows.adaptation import run_adapt
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CheckpointRef, ReportRef
from bsl.tasks.embedding.encoders import (
    can_drop,
    check_learns,
    find_encoder,
    is_bare,
    resolve,
)
from bsl.tasks.stage.progress import listening
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import write_tiny
from tests.tiny_words import WIDTH, words

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save an encoder with [CLS] pooling and normalization."""
    config = EncoderConfig(model=str(write_tiny(tmp_path / "raw")), pooling="cls", normalize=True)
    encoder = SentenceEncoder.load(tmp_path / "raw", config)
    encoder.save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.parametrize(
    ("figures", "described"),
    [
        ({"verdict": "NOT PROVED", "adapted": False}, "NOT PROVED: the original encoder"),
        ({"verdict": "NOT PROVED", "adapted": True}, "NOT PROVED: the adapted encoder"),
        ({"verdict": "BETTER"}, "BETTER"),  # of a run, which always has the trained encoder
        ({}, "without verdict"),
    ],
)
def test_report_named_as_encoder_says_which_one_it_is(
    tmp_path: Path, figures: dict[str, JsonValue], described: str
) -> None:
    site = RunContext(store=str(tmp_path))
    store, report = site.open_store(), ReportRef(key="d" * 64)
    inputs = {"trained": InputEntry(kind="checkpoint", key="c" * 64, digest="e" * 64)}
    with store.draft(report, Provenance(stage_version=1, config={}, inputs=inputs)) as draft:
        (draft.folder / "page.html").write_text("page")
        draft.note(figures)
    heard: list[object] = []
    with listening(lambda event, value: heard.append((event, value))):
        assert find_encoder(site, "report/latest", None) == CheckpointRef(key="c" * 64)
    assert heard == [("tells", f"encoder: report/{'d' * 12}, {described}")]


def test_unset_encoder_settings_come_from_the_saved_folder(saved: Path, tmp_path: Path) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    found = resolve(site, EncoderConfig(model=str(saved)))
    assert (found.config.pooling, found.config.normalize) == ("cls", True)
    assert not is_bare(site, found.encoder)


def test_onnx_model_uses_start_and_pooling_of_its_folder(saved: Path, tmp_path: Path) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    for folder in (tmp_path / "raw", saved):
        (folder / "model.onnx").touch()
        places = (folder, folder / "model.onnx")
        found = [resolve(site, EncoderConfig(model=str(place))) for place in places]
        alone, graph = ((is_bare(site, one.encoder), one.config.pooling) for one in found)
        assert graph == alone


def test_word_vector_encoder_rejects_dropout_views(saved: Path, tmp_path: Path) -> None:
    SentenceTransformer(modules=[*words(), Pooling(WIDTH)], device="cpu").save(str(tmp_path / "words"))
    site = RunContext(store=str(tmp_path / "store"))
    starts = [find_encoder(site, str(tmp_path / name), None) for name in ("raw", "saved", "words")]
    assert [can_drop(site, start) for start in starts] == [True, True, False]
    text = tmp_path / "own.txt"
    text.write_text("It has rained for days.\n")
    with pytest.raises(
        EncoderError, match=r"words: --views dropout needs a transformer .found a table of word vectors"
    ):
        run_adapt([str(text)], str(tmp_path / "words"), None, AdaptConfig(views="dropout"), site)


def test_bare_transformer_uses_the_configured_settings(tmp_path: Path) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    folder = write_tiny(tmp_path / "raw")
    found = resolve(site, EncoderConfig(model=str(folder), pooling="max"))
    assert found.config == EncoderConfig(model=found.checkpoint, pooling="max")
    assert is_bare(site, found.encoder)


@pytest.mark.parametrize("named", ["onnx/model.onnx", "."], ids=["by its path", "alone in its folder"])
def test_onnx_model_uses_saved_settings_and_cannot_be_trained(saved: Path, tmp_path: Path, named: str) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    (saved / "onnx").mkdir()
    (saved / "onnx" / "model.onnx").write_bytes(b"")
    check_learns(find_encoder(site, str(saved), None))
    (saved / "model.safetensors").rename(tmp_path / "away.safetensors")
    found = resolve(site, EncoderConfig(model=str(saved / named)))
    assert found.config.pooling == "cls"
    with pytest.raises(EncoderError, match=r"no gradients \(expected weights to train"):
        check_learns(found.encoder)
