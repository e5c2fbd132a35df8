"""Inconsistent view configurations are refused before a run."""

import pytest
from pydantic import ValidationError

from bsl.models.translation.config import TranslatorConfig
from bsl.models.views.config import AugmentConfig, TranslatedView, round_trip, translation


def hop(source, target):
    return TranslatorConfig(model=f"Helsinki-NLP/opus-mt-{source}-{target}", source_lang=source, target_lang=target)


def test_method_name_and_language_follow_from_the_hops():
    assert round_trip(hop("en", "de"), hop("de", "en")).method == "bt-de"
    assert round_trip(hop("en", "de"), hop("de", "en")).lang == "en"
    assert translation(hop("en", "ar")).method == "mt-ar"
    assert translation(hop("en", "ar")).lang == "ar"


def test_hops_with_mismatched_languages_are_refused():
    with pytest.raises(ValidationError, match="translates into de, but the next one translates from fr"):
        round_trip(hop("en", "de"), hop("fr", "en"))


def test_back_translation_returns_to_source_and_translation_does_not():
    with pytest.raises(ValidationError, match="from en to de"):
        TranslatedView(method="bt-de", hops=(hop("en", "de"),))
    with pytest.raises(ValidationError, match="from en to en"):
        TranslatedView(method="mt-de", hops=(hop("en", "de"), hop("de", "en")))


def test_duplicate_method_names_are_refused():
    view = round_trip(hop("en", "de"), hop("de", "en"))
    with pytest.raises(ValidationError, match="a name occurs twice"):
        AugmentConfig(translations=(view, view))


def test_config_without_views_is_refused():
    with pytest.raises(ValidationError, match=r"no views\. Set"):
        AugmentConfig(original=False)


@pytest.mark.parametrize("field", [{"beem": 4}, {"beam": 0}, {"target_token": "deu"}, {"source_lang": "English"}])
def test_invalid_translator_field_is_refused(field):
    with pytest.raises(ValidationError):
        TranslatorConfig.model_validate({"model": "m", "source_lang": "en", "target_lang": "de"} | field)


def test_backend_and_beam_options_apply_to_every_translator():
    view = round_trip(hop("en", "de"), hop("de", "en").model_copy(update={"beam": 2}))
    config = AugmentConfig(translations=(view, translation(hop("en", "ar"))))
    assert config.routes == config.translations
    worded = AugmentConfig.model_validate(config.model_dump() | {"backend": "transformers", "beam": 4})
    hops = [each for route in worded.routes for each in route.hops]
    assert {(each.backend, each.precision, each.beam) for each in hops} == {("transformers", "auto", 4)}
    assert [each.model for each in hops] == [each.model for view in config.translations for each in view.hops]
    assert worded.translations == config.translations, "null takes each translator's own settings again"


@pytest.mark.parametrize("words", [{"backend": "marian"}, {"precision": "fp8"}, {"beam": 0}])
def test_invalid_backend_precision_or_beam_option_is_refused(words):
    with pytest.raises(ValidationError):
        AugmentConfig.model_validate(words)
