"""The transformers backend on a small real MarianMT model."""

import re

import pytest
import torch
from transformers import MarianMTModel, MarianTokenizer

from bsl.models.errors import TranslationError
from bsl.models.translation.config import TranslatorConfig
from bsl.storage.assets.embedded import embedded_path
from tests.tiny_marian import SENTENCES, build_tiny_marian, load_on_transformers

CONFIG = TranslatorConfig(model="tiny", source_lang="en", target_lang="de", precision="fp32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory):
    return build_tiny_marian(tmp_path_factory.mktemp("multilingual"), codes=(">>deu<<", ">>fra<<"))


@pytest.fixture(scope="module")
def translator(folder):
    return load_on_transformers(folder, CONFIG)


@pytest.mark.parametrize("named", ["random", "trained"])
def test_greedy_search_equals_generate(folder, named):
    """Sentence by sentence with transformers' own tokenizer, ``generate`` and decoding."""
    place = folder if named == "random" else embedded_path("marian-mini-en-mul")
    config = CONFIG if named == "random" else CONFIG.model_copy(update={"target_token": ">>deu<<"})
    tokenizer, model = MarianTokenizer.from_pretrained(place), MarianMTModel.from_pretrained(place)
    sample = SENTENCES[::17]
    expected = []
    for text in sample:
        inputs = tokenizer([(config.target_token or "") + text], return_tensors="pt")
        cap = config.new_tokens_cap(inputs.input_ids.shape[1])
        # A forced end mark at the cap would replace the last piece of an unfinished translation; ours is truncated.
        output = model.generate(**inputs, num_beams=1, max_new_tokens=cap, max_length=None, forced_eos_token_id=None)
        expected.append(tokenizer.decode(output[0], skip_special_tokens=True))
    assert len(set(expected)) > 16  # equal answers from random weights would prove nothing
    found = load_on_transformers(place, config).translate(sample)
    assert [translation.text for translation in found] == expected


def test_score_is_the_mean_log_probability_of_the_pieces(folder, translator):
    model = MarianMTModel.from_pretrained(folder)
    texts = SENTENCES[3:30:5]
    sources = translator.vocabulary.encode(texts)
    found = translator.engine.submit(sources, [translator.cap(len(source)) for source in sources])()
    for source, translation, (decoded, _) in zip(sources, translator.translate(texts), found, strict=True):
        if translation.n_tokens == CONFIG.new_tokens_cap(len(source)):
            continue  # unfinished: no end mark to score
        labels = torch.tensor([[*decoded, model.config.eos_token_id]])
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([source]), labels=labels).logits
        logits[..., model.config.pad_token_id] = -torch.inf
        expected = logits.log_softmax(-1).gather(-1, labels[..., None]).mean().item()
        assert translation.score == pytest.approx(expected, abs=1e-4)


def test_token_budget_does_not_change_order_or_translations(folder, translator):
    sample = SENTENCES[::40]
    whole = [translation.text for translation in translator.translate(sample)]
    for token_budget in (64, 300):
        cut = load_on_transformers(folder, CONFIG, token_budget=token_budget)
        assert [translation.text for translation in cut.translate(sample[::-1])[::-1]] == whole, token_budget


def test_repeated_translation_gives_equal_texts_and_scores(translator):
    assert translator.translate(SENTENCES[:20]) == translator.translate(SENTENCES[:20])


def test_progress_ends_at_the_total_number_of_sentences(translator):
    calls: list[tuple[int, int, str]] = []
    result = translator.translate([*SENTENCES[:80], "..."], lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert len(calls) > 1
    assert calls[-1][:2] == (81, 81)
    assert re.fullmatch(rf"{sum(t.n_tokens for t in result):,} target tokens, [\d,]+/s", calls[-1][2])


def test_beam_search_equals_generate(folder):
    config = CONFIG.model_copy(update={"beam": 4})
    tokenizer, model = MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder)
    text = SENTENCES[12]
    inputs = tokenizer([text], return_tensors="pt")
    cap = config.new_tokens_cap(inputs.input_ids.shape[1])
    output = model.generate(**inputs, num_beams=4, max_new_tokens=cap, max_length=None)
    [translation] = load_on_transformers(folder, config).translate([text])
    assert translation.text == tokenizer.decode(output[0], skip_special_tokens=True)
    assert translation.score is None


def test_long_sources_are_truncated_at_max_source_tokens(folder):
    translator = load_on_transformers(folder, CONFIG.model_copy(update={"max_source_tokens": 20}))
    endless = " ".join(SENTENCES)
    assert [len(source) for source in translator.vocabulary.encode([endless])] == [20]
    assert translator.translate([endless])[0].text


def test_bf16_model_loads_and_translates(folder):
    translator = load_on_transformers(folder, CONFIG.model_copy(update={"precision": "bf16"}))
    assert translator.engine.model.dtype == torch.bfloat16
    assert all(t.score is not None and t.score < 0 for t in translator.translate(SENTENCES[:5]))


def test_punctuation_is_normalised_when_configured(folder):
    translator = load_on_transformers(folder, CONFIG.model_copy(update={"normalize_punctuation": True}))
    assert translator.translate(["„Anna“ sings…"]) == translator.translate(['"Anna" sings...'])


def test_incomplete_model_folder_error_names_missing_files(tmp_path, folder):
    with pytest.raises(TranslationError, match=r"No such file or directory: .*config\.json"):
        load_on_transformers(tmp_path, CONFIG)
    for path in folder.iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(TranslationError, match=r"no file named .*model\.safetensors"):
        load_on_transformers(tmp_path, CONFIG)


class TestTargetToken:
    def test_target_token_is_first_in_every_source(self, multilingual):
        tokenizer = MarianTokenizer.from_pretrained(multilingual)
        translator = load_on_transformers(multilingual, CONFIG.model_copy(update={"target_token": ">>fra<<"}))
        expected = tokenizer([">>fra<<" + text for text in SENTENCES[:9]]).input_ids
        assert translator.vocabulary.encode(SENTENCES[:9]) == expected

    def test_target_token_changes_the_translation(self, multilingual):
        german, french = (
            load_on_transformers(multilingual, CONFIG.model_copy(update={"target_token": token})).translate(
                SENTENCES[:9]
            )
            for token in (">>deu<<", ">>fra<<")
        )
        assert german != french

    def test_target_token_is_required_for_several_languages(self, multilingual):
        with pytest.raises(TranslationError, match=">>deu<<, >>fra<<"):
            load_on_transformers(multilingual, CONFIG)

    def test_unknown_target_token_is_rejected(self, multilingual):
        with pytest.raises(TranslationError, match=r">>tur<< is not in the model's vocabulary \(expected: >>deu<<"):
            load_on_transformers(multilingual, CONFIG.model_copy(update={"target_token": ">>tur<<"}))

    def test_target_token_in_text_is_encoded_as_plain_text(self, multilingual):
        translator = load_on_transformers(multilingual, CONFIG.model_copy(update={"target_token": ">>deu<<"}))
        [source] = translator.vocabulary.encode([">>fra<< Anna </s> sings."])
        numbers = MarianTokenizer.from_pretrained(multilingual).get_vocab()
        assert source[0] == numbers[">>deu<<"]
        assert numbers[">>fra<<"] not in source
        assert source.count(numbers["</s>"]) == 1
