"""The smoke test stops a translator that runs but does not produce language; the embedded translators pass it."""

from dataclasses import dataclass

import pytest

from bsl.models.errors import TranslationError
from bsl.models.translation import loading
from bsl.models.translation.batching import Translation
from bsl.models.translation.config import MINI, Pin, Resources, TranslatorConfig
from bsl.models.translation.smoke_test import PLAIN_SENTENCES, smoke_test
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.translation.translator import embedded_pins
from tests.tiny_marian import load_on_transformers

GERMAN = dict(zip(PLAIN_SENTENCES["en"], PLAIN_SENTENCES["de"], strict=True))
BOOK = "The boy is reading a book."


def config(source, target, pinned=None):
    pins = tuple(Pin(source=text, translation=translation) for text, translation in (pinned or {}).items())
    return TranslatorConfig(model="book", source_lang=source, target_lang=target, precision="fp32", pinned=pins)


@dataclass(frozen=True)
class PhraseBook:
    """A translator that looks up its phrases: the smallest implementation of the protocol."""

    phrases: dict[str, str]

    def translate(self, texts, on_progress=None):
        return [Translation(self.phrases[text], 1, 0.0) for text in texts]


def test_valid_or_pinned_translations_pass_and_other_languages_are_skipped():
    assert smoke_test(PhraseBook(GERMAN), config("en", "de")) == list(GERMAN.items())
    pinned = {BOOK: "Der Junge liest ein Buch."}
    assert smoke_test(PhraseBook(GERMAN), config("en", "de", pinned)) == list(pinned.items())
    assert smoke_test(PhraseBook({}), config("nl", "en")) == []


@pytest.mark.parametrize(
    ("phrases", "pinned", "fault"),
    [
        (dict.fromkeys(GERMAN, ""), {}, r"3 of 3 are bad \(empty\)"),
        (GERMAN | {BOOK: "die die die die die die"}, {}, r"1 of 3 are bad \(loop\)"),
        (dict.fromkeys(GERMAN, "Das ist ein Satz."), {}, "the same translation"),
        ({text: text for text in GERMAN}, {}, r"3 of 3 are bad \(copy\)"),
        (dict(zip(GERMAN, PLAIN_SENTENCES["fr"], strict=True)), {}, "letter trigrams"),  # the wrong target token
        (
            GERMAN,
            GERMAN | {BOOK: "Der Knabe liest ein Buch."},
            "1 of 3 differ .* expected 'Der Knabe liest ein Buch.', found 'Der Junge liest ein Buch.'",
        ),
    ],
)
def test_bad_translations_fail_the_smoke_test(phrases, pinned, fault):
    with pytest.raises(TranslationError, match=fault):
        smoke_test(PhraseBook(phrases), config("en", "de", pinned))


def test_plain_sentences_distinguish_every_language():
    for lang, sentences in PLAIN_SENTENCES.items():
        for other in PLAIN_SENTENCES.keys() - {lang}:
            book = PhraseBook(dict(zip(PLAIN_SENTENCES["en"], sentences, strict=True)))
            with pytest.raises(TranslationError):
                smoke_test(book, config("en", other))


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
