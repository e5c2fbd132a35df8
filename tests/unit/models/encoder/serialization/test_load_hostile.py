"""A damaged model folder ends in an error that names the folder, and its code is never run."""

import re
import shutil

import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import ModelError, TranslationError
from bsl.models.translation.config import Resources, TranslatorConfig
from bsl.models.translation.loading import load_translator
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import SourceError, StorageError
from bsl.storage.sources.model_sources import resolve_model
from tests.hostile_models import DAMAGES, cut, fields, gone, text

# transformers accepts these damages: they change only fields that are not used here, such as a class name.
HARMLESS = {"config knows no activation", "config asks for code", "tokenizer settings name no class"} | {
    "tokenizer ends after no token"
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.filterwarnings("ignore")
def test_damaged_encoder_folder_error_names_the_folder_and_fix(tmp_path, damage):
    folder = tmp_path / "model"
    shutil.copytree(embedded_path("bert-mini"), folder)
    DAMAGES[damage](folder)

    def load() -> None:
        model = resolve_model(str(folder)).folder
        SentenceEncoder.load(model, EncoderConfig(model="model"))

    if damage in HARMLESS:
        load()
        return
    with pytest.raises((ModelError, StorageError)) as refusal:
        load()
    assert str(tmp_path) in str(refusal.value)
    assert re.search(r"[;.] \w", str(refusal.value))  # the part that says how to fix it


BROKEN_TRANSLATORS = {
    "config is nested": text("config.json", "[" * 100_000),
    "config has no heads": fields("config.json", encoder_attention_heads=0),
    "config has another width": fields("config.json", d_model=64),
    "weights are torn": cut("model.safetensors", 0.5),
    "weights are gone": gone("model.safetensors"),
    "vocabulary is torn": cut("vocab.json", 0.5),
    "pieces are torn": cut("source.spm", 0.5),
    "pieces are gone": gone("target.spm"),
}


@pytest.mark.parametrize("backend", ["transformers", "ctranslate2"])
@pytest.mark.parametrize("damage", BROKEN_TRANSLATORS)
@pytest.mark.filterwarnings("ignore")
def test_damaged_translator_folder_error_names_the_folder(tmp_path, damage, backend):
    folder = tmp_path / "model"
    shutil.copytree(embedded_path("marian-mini-mul-en"), folder)
    BROKEN_TRANSLATORS[damage](folder)
    config = TranslatorConfig(model=str(folder), source_lang="de", target_lang="en", backend=backend)
    with pytest.raises(TranslationError, match=str(tmp_path)):
        load_translator(folder, config, Resources("cpu", cores=1), tmp_path / "converted")
    assert not (tmp_path / "converted").exists()


@pytest.mark.parametrize("spec", ["x" * 5000, "/" + "y/" * 3000, "a\0b", "../../etc"])
def test_invalid_model_name_raises_source_error(spec, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceError):
        resolve_model(spec)
