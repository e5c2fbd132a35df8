"""The transformers backend on a small real MarianMT model."""

import json
import re
import shutil
from pathlib import Path

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


def load(folder, budget=None, **changes):
    return load_on_transformers(folder, CONFIG.model_copy(update=changes), token_budget=budget)


@pytest.fixture(scope="module")
def translator(folder):
    return load(folder)


@pytest.mark.parametrize(("weights", "beam"), [("random", 1), ("trained", 1), ("random", 4)])
def test_search_equals_generate(folder, weights, beam):
    """Sentence by sentence with transformers' own tokenizer, ``generate`` and decoding."""
    place = folder if weights == "random" else embedded_path("marian-mini-en-mul")
    token = None if weights == "random" else ">>deu<<"
    tokenizer, model = MarianTokenizer.from_pretrained(place), MarianMTModel.from_pretrained(place)
    sample = SENTENCES[::17] if beam == 1 else SENTENCES[12:13]
    # A forced end mark at the cap would replace the last piece of an unfinished translation; greedy search truncates.
    settings = {"forced_eos_token_id": None} if beam == 1 else {}
    expected = []
    for text in sample:
        inputs = tokenizer([(token or "") + text], return_tensors="pt")
        cap = CONFIG.new_tokens_cap(inputs.input_ids.shape[1])
        output = model.generate(**inputs, num_beams=beam, max_new_tokens=cap, max_length=None, **settings)
        expected.append(tokenizer.decode(output[0], skip_special_tokens=True))
    assert len(set(expected)) > 16 or beam == 4  # equal answers from random weights would prove nothing
    found = load(place, target_token=token, beam=beam).translate(sample)
    assert [translation.text for translation in found] == expected
    assert (found[0].score is None) == (beam == 4)


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


def test_token_budget_and_repetition_do_not_change_order_or_translations(folder, translator):
    sample = SENTENCES[::40]
    whole = translator.translate(sample)
    assert translator.translate(sample) == whole
    for budget in (1, 64, 300):
        cut = load(folder, budget).translate(sample[::-1])[::-1]
        assert [translation.text for translation in cut] == [translation.text for translation in whole], budget
        assert [each.score for each in cut] == pytest.approx([each.score for each in whole], abs=1e-3)


def test_progress_ends_at_the_total_number_of_sentences(translator):
    calls = []
    result = translator.translate([*SENTENCES[:80], "..."], lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert len(calls) > 1
    assert calls[-1][:2] == (81, 81)
    assert re.fullmatch(rf"{sum(t.n_tokens for t in result):,} target tokens, [\d,]+/s", calls[-1][2])


def test_long_sources_are_truncated_at_max_source_tokens(folder):
    translator = load(folder, max_source_tokens=20)
    assert [len(source) for source in translator.vocabulary.encode([" ".join(SENTENCES)])] == [20]


def test_translations_say_what_was_cut(folder):
    long, fits = SENTENCES[0], len(load(folder).vocabulary.encode(SENTENCES[:1])[0])
    for limit, lost in ((fits, ""), (fits - 1, "source")):
        translator = load(folder, max_source_tokens=limit, new_tokens_constant=500)
        assert [translation.lost for translation in translator.translate([long, "..."])] == [lost, ""]
    for beam in (1, 2):  # a beam search writes the end mark as the last piece of its cap
        brief = load(folder, new_tokens_ratio=0.1, new_tokens_constant=3, beam=beam)
        assert {translation.lost for translation in brief.translate(SENTENCES[:12])} == {"translation"}


def test_bf16_model_loads_and_translates(folder):
    translator = load(folder, precision="bf16")
    assert translator.engine.model.dtype == torch.bfloat16
    assert all(t.score is not None and t.score < 0 for t in translator.translate(SENTENCES[:5]))


def test_punctuation_is_normalised_when_configured(folder):
    translator = load(folder, normalize_punctuation=True)
    assert translator.translate(["„Anna“ sings…"]) == translator.translate(['"Anna" sings...'])


def test_target_token_is_first_in_every_source_and_plain_text_inside_a_text(multilingual):
    tokenizer, translator = MarianTokenizer.from_pretrained(multilingual), load(multilingual, target_token=">>fra<<")
    expected = tokenizer([">>fra<<" + text for text in SENTENCES[:9]]).input_ids
    assert translator.vocabulary.encode(SENTENCES[:9]) == expected
    assert translator.translate(SENTENCES[:9]) != load(multilingual, target_token=">>deu<<").translate(SENTENCES[:9])
    numbers = tokenizer.get_vocab()
    [source] = translator.vocabulary.encode([">>deu<< Anna </s> sings."])
    assert source[0] == numbers[">>fra<<"]
    assert numbers[">>deu<<"] not in source
    assert source.count(numbers["</s>"]) == 1


@pytest.mark.parametrize(
    ("token", "message"),
    [(None, ">>deu<<, >>fra<<"), (">>tur<<", r">>tur<< is not in the model's vocabulary \(expected: >>deu<<")],
)
def test_target_token_is_required_and_known_for_several_languages(multilingual, token, message):
    with pytest.raises(TranslationError, match=message):
        load(multilingual, target_token=token)


def test_folder_of_another_model_or_without_a_file_is_refused(folder, tmp_path):
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / "source.spm").unlink()
    with pytest.raises(TranslationError, match=r"no source\.spm, expected the files of a MarianMT model"):
        load(copy)
    settings = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(settings | {"model_type": "m2m_100"}))
    with pytest.raises(TranslationError, match=r"model_type is 'm2m_100', expected 'marian'\. Use a MarianMT model"):
        load(copy)
