"""The embedded translators translate real sentences."""

import pytest

from bsl.models.errors import TranslationError
from bsl.models.translation import loading
from bsl.models.translation.config import MINI, Resources
from bsl.models.translation.smoke_test import smoke_test
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.translation.translator import embedded_pins
from tests.tiny_marian import load_on_transformers


def folder_of(config):
    return embedded_path(config.model.removeprefix("embedded:"))


@pytest.fixture(scope="module")
def conversions(tmp_path_factory):
    return tmp_path_factory.mktemp("converted")


@pytest.mark.parametrize("direction", ["en-fr", "de-en"])  # those without pinned translations below
def test_embedded_translators_pass_the_smoke_test(direction):
    config = MINI[direction].model_copy(update={"precision": "fp32", "pinned": ()})
    assert len(smoke_test(load_on_transformers(folder_of(config), config), config)) == 3


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("direction", ["en-de", "fr-en"])
def test_every_engine_reproduces_the_pinned_translations(direction, beam, conversions):
    for backend, precision in (("transformers", "fp32"), ("ctranslate2", "fp32"), ("ctranslate2", "int8")):
        settings = {"backend": backend, "precision": precision, "beam": beam}
        config = MINI[direction].model_copy(update=settings)
        pinned, folder = config.model_copy(update={"pinned": embedded_pins(config)}), folder_of(config)
        engine = loading.load_translator(folder, pinned, Resources("cpu", cores=1), conversions / folder.name)
        assert len(smoke_test(engine, pinned)) >= 2


def test_another_direction_fails_the_pinned_translations(conversions):
    german, french = (MINI[direction].model_copy(update={"precision": "int8"}) for direction in ("en-de", "en-fr"))
    folder = folder_of(french)
    engine = loading.load_translator(folder, french, Resources("cpu", cores=1), conversions / folder.name)
    with pytest.raises(TranslationError, match=r"expected 'Der Junge liest ein Buch\.', found 'Le garçon"):
        smoke_test(engine, german.model_copy(update={"pinned": embedded_pins(german)}))
