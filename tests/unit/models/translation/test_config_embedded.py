"""The embedded translators translate real sentences."""

from functools import cache

import polars as pl
import pytest

from bsl.models.errors import TranslationError
from bsl.models.translation import loading
from bsl.models.translation.config import MINI, Resources
from bsl.models.translation.filters import FILTERS, Texts, translation_reason
from bsl.models.translation.smoke_test import smoke_test
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.translation.translator import embedded_pins
from tests.tiny_marian import load_on_transformers

SENTENCES = (
    "A man is cutting up a cucumber.",
    "Two boys in green uniforms are playing football on the grass while a woman watches them from the bench.",
    "The doctors are not happy about it.",
    "She's reading.",
    "An old woman with a red hat is waiting for the bus in the rain.",
    "He told me that he had never been to the sea before.",
)


def folder_of(config):
    return embedded_path(config.model.removeprefix("embedded:"))


@cache
def translator(direction):
    config = MINI[direction].model_copy(update={"precision": "fp32"})
    return load_on_transformers(folder_of(config), config)


@pytest.fixture(scope="module")
def conversions(tmp_path_factory):
    return tmp_path_factory.mktemp("converted")


@pytest.mark.parametrize("direction", ["en-fr", "de-en"])  # those without pinned translations below
def test_embedded_translators_pass_the_smoke_test(direction):
    assert len(smoke_test(translator(direction), MINI[direction].model_copy(update={"pinned": ()}))) == 3


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


def test_round_trips_pass_the_filters_and_share_words():
    there = translator("en-fr").translate(SENTENCES)
    back = [each.text for each in translator("fr-en").translate([each.text for each in there])]
    frame = pl.DataFrame({"source": SENTENCES, "text": back})
    reasons = frame.select(translation_reason(Texts(pl.col("source"), pl.col("text")), FILTERS))["reason"]
    assert reasons.null_count() == 6
    assert sum(bool({*a.lower().split()} & {*b.lower().split()}) for a, b in frame.rows()) >= 5
