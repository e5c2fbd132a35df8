"""The embedded translators translate real sentences, and batch size does not change a translation."""

from functools import cache

import polars as pl
import pytest

from bsl.models.errors import TranslationError
from bsl.models.translation import loading
from bsl.models.translation.config import MINI, Resources, TranslatorConfig
from bsl.models.translation.filters import FILTERS, Texts, translation_reason
from bsl.models.translation.smoke_test import smoke_test
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.translation.translator import embedded_pins
from tests.tiny_marian import load_on_transformers

OUT, BACK = "marian-mini-en-mul", "marian-mini-mul-en"
BEAMS = (1, 2, 4)
SENTENCES = (
    "A man is cutting up a cucumber.",
    "Two boys in green uniforms are playing football on the grass while a woman watches them from the bench.",
    "The doctors are not happy about it.",
    "She's reading.",
    "An old woman with a red hat is waiting for the bus in the rain.",
    "He told me that he had never been to the sea before.",
)


@cache
def translator(name, source, target, token, budget=None):
    config = TranslatorConfig(
        model=f"embedded:{name}", source_lang=source, target_lang=target, target_token=token, precision="fp32"
    )
    return load_on_transformers(embedded_path(name), config, token_budget=budget)


@pytest.mark.parametrize(
    ("name", "source", "target", "token"),
    [
        (OUT, "en", "de", ">>deu<<"),
        (OUT, "en", "fr", ">>fra<<"),
        (BACK, "de", "en", None),
        (BACK, "fr", "en", None),
    ],
)
def test_embedded_translators_pass_the_smoke_test(name, source, target, token):
    config = TranslatorConfig(model=name, source_lang=source, target_lang=target)
    assert len(smoke_test(translator(name, source, target, token), config)) == 3


ENGINES = (("transformers", "fp32"), ("ctranslate2", "fp32"), ("ctranslate2", "int8"))


@pytest.fixture(scope="module")
def conversions(tmp_path_factory):
    return tmp_path_factory.mktemp("converted")


@pytest.mark.parametrize("beam", BEAMS)
@pytest.mark.parametrize("direction", ["en-de", "fr-en"])
def test_every_engine_reproduces_the_pinned_translations(direction, beam, conversions):
    for backend, precision in ENGINES:
        settings = {"backend": backend, "precision": precision, "beam": beam}
        config = MINI[direction].model_copy(update=settings)
        pinned = config.model_copy(update={"pinned": embedded_pins(config)})
        folder = embedded_path(config.model.removeprefix("embedded:"))
        engine = loading.load_translator(folder, pinned, Resources("cpu", cores=1), conversions / folder.name)
        assert len(smoke_test(engine, pinned)) >= 2


def test_another_direction_fails_the_pinned_translations(conversions):
    german, french = (MINI[direction].model_copy(update={"precision": "int8"}) for direction in ("en-de", "en-fr"))
    engine = loading.load_translator(embedded_path(OUT), french, Resources("cpu", cores=1), conversions / OUT)
    with pytest.raises(TranslationError, match=r"expected 'Der Junge liest ein Buch\.', found 'Le garçon"):
        smoke_test(engine, german.model_copy(update={"pinned": embedded_pins(german)}))


def test_batch_size_does_not_change_a_translation():
    whole = translator(OUT, "en", "de", ">>deu<<").translate(SENTENCES)
    single = [translator(OUT, "en", "de", ">>deu<<", 1).translate([text])[0] for text in SENTENCES]
    assert [each.text for each in whole] == [each.text for each in single]
    assert [each.score for each in whole] == pytest.approx([each.score for each in single], abs=1e-3)


def test_round_trips_pass_the_filters_and_share_words():
    there = translator(OUT, "en", "fr", ">>fra<<").translate(SENTENCES)
    back = translator(BACK, "fr", "en", None).translate([each.text for each in there])
    frame = pl.DataFrame({"source": SENTENCES, "text": [each.text for each in back]})
    assert (
        frame.select(translation_reason(Texts(pl.col("source"), pl.col("text")), FILTERS))["reason"].null_count() == 6
    )
    shared = [set(a.lower().split()) & set(b.lower().split()) for a, b in frame.rows()]
    assert sum(map(bool, shared)) >= 5
