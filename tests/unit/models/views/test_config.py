"""Inconsistent view configurations are refused before a run."""

import pytest
from pydantic import ValidationError

from bsl.models.translation.config import TranslatorConfig
from bsl.models.views.config import AugmentConfig, CropView, TranslatedView, round_trip, translation
from bsl.models.views.pairs import PairConfig, ViewPair


def hop(source, target, **changes):
    model = f"Helsinki-NLP/opus-mt-{source}-{target}"
    return TranslatorConfig.model_validate({"model": model, "source_lang": source, "target_lang": target} | changes)


TWICE = ViewPair(view_1="original", view_2="bt-de")
GERMAN = round_trip(hop("en", "de"), hop("de", "en"))


def test_method_name_and_language_follow_from_the_hops():
    assert (GERMAN.method, GERMAN.lang) == ("bt-de", "en")
    assert (translation(hop("en", "ar")).method, translation(hop("en", "ar")).lang) == ("mt-ar", "ar")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: round_trip(hop("en", "de"), hop("fr", "en")), "into de, but the next one translates from fr"),
        (lambda: TranslatedView(method="bt-de", hops=(hop("en", "de"),)), "from en to de"),
        (lambda: TranslatedView(method="mt-de", hops=GERMAN.hops), "from en to en"),
        (lambda: AugmentConfig(translations=(GERMAN, GERMAN)), "a name occurs twice"),
        (lambda: AugmentConfig(original=False), r"no views\. Set"),
        (lambda: CropView(least=0.9, most=0.4), r"least is 0\.9, expected at most the value of most \(0\.4\)"),
        (lambda: PairConfig(pairings=(TWICE, TWICE)), r"pairings has original\|bt-de twice"),
        (lambda: PairConfig(labelled=True, scored="stsb/train"), "no pair has a label and a score"),
        (lambda: hop("en", "de", target_token="deu"), "target_token"),
        (lambda: hop("English", "de"), "source_lang"),
    ],
)
def test_inconsistent_settings_are_refused(made, message):
    with pytest.raises(ValidationError, match=message):
        made()


def test_backend_and_beam_options_apply_to_every_translator():
    view = round_trip(hop("en", "de"), hop("de", "en", beam=2))
    config = AugmentConfig(translations=(view, translation(hop("en", "ar"))))
    assert config.routes == config.translations
    worded = AugmentConfig.model_validate(config.model_dump() | {"backend": "transformers", "beam": 4})
    hops = [each for route in worded.routes for each in route.hops]
    assert {(each.backend, each.precision, each.beam) for each in hops} == {("transformers", "auto", 4)}
    assert [each.model for each in hops] == [each.model for view in config.translations for each in view.hops]
    assert worded.translations == config.translations, "null takes each translator's own settings again"
