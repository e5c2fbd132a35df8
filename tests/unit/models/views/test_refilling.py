"""Views with tokens refilled by real masked language models: the embedded one and a tiny byte-level RoBERTa."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizerFast

from bsl.models.errors import EncoderError
from bsl.models.views.config import MaskedView
from bsl.models.views.refilling import RefillModel, refill
from bsl.storage.assets.embedded import embedded_path
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

TEXTS = [*ORIGINALS, *BACK_DE, *BACK_FR, "  Odd   spaces, kept.", "Ünïcode naïve 😀😀 café"]
SEEDS = list(range(len(TEXTS)))
VIEW = MaskedView()


@pytest.fixture(scope="module")
def bert():
    return RefillModel(embedded_path("bert-mini"), "cpu")


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roberta")
    bpe = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(TEXTS, vocab_size=400, min_frequency=1, special_tokens=specials)
    bpe.save_model(str(folder))
    RobertaTokenizerFast.from_pretrained(folder, model_max_length=64).save_pretrained(folder)
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=400, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, pad_token_id=1
    )
    RobertaForMaskedLM(config).save_pretrained(folder)
    return RefillModel(folder, "cpu")


@pytest.fixture(params=["bert", "roberta"])
def model(request):
    return request.getfixturevalue(request.param)


def test_refill_depends_only_on_sentence_and_seed(model):
    whole = refill(TEXTS, SEEDS, model, VIEW, 2048)
    assert refill(TEXTS[::-1], SEEDS[::-1], model, VIEW, 64)[::-1] == whole
    assert [refill([text], [seed], model, VIEW, 64)[0] for text, seed in zip(TEXTS, SEEDS, strict=True)] == whole
    assert refill(TEXTS, [seed + 99 for seed in SEEDS], model, VIEW, 2048) != whole


def test_refill_preserves_whitespace_and_unmasked_words(model):
    for old, new in zip(TEXTS, refill(TEXTS, SEEDS, model, VIEW, 2048), strict=True):
        assert re.findall(r"\s+", new) == re.findall(r"\s+", old)
        words = list(zip(old.split(), new.split(), strict=True))
        assert sum(one == other for one, other in words) >= len(words) // 2


def test_refill_writes_no_special_or_partial_tokens_and_leaves_empty_texts(model):
    assert refill(["", " "], [0, 1], model, VIEW, 64) == ["", " "]
    for text in refill(TEXTS, SEEDS, model, MaskedView(share=1.0, top_k=50), 2048):
        assert not re.search(r"\[\w+\]|</?\w+>|##|Ġ|\ufffd", text)


def test_refill_preserves_capitals_with_an_uncased_model(bert):
    every = refill(ORIGINALS, [1, 2, 3, 4], bert, MaskedView(share=1.0), 2048)
    assert all(text[0].isupper() for text in every)


def test_top_1_refill_can_predict_the_original_word(bert):
    view = MaskedView(top_k=1, share=0.01)  # one token of each sentence, replaced by the most probable one
    filled = {refill(["Two dogs run across the snow."], [seed], bert, view, 64)[0] for seed in range(20)}
    assert "Two dogs run across the snow." in filled  # at some position, the masked token is the most probable one
    assert len(filled) > 1


def test_model_without_a_mask_token_is_refused(tmp_path):
    folder = write_tiny(tmp_path / "model")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        path = folder / name
        if path.is_file():
            path.write_text(re.sub(r'\s*"mask_token": "[^"]*",?', "", path.read_text()))
    with pytest.raises(EncoderError, match="expected a masked language model"):
        RefillModel(folder, "cpu")


def test_model_without_a_masked_lm_head_is_refused(tmp_path):
    """transformers would initialise a random head, and every refilled token would be noise."""
    with pytest.raises(
        EncoderError, match=r"\d+ weights of a masked language model are missing \(first: cls\.predictions"
    ):
        RefillModel(write_tiny(tmp_path / "model"), "cpu")


def test_custom_model_code_is_refused_and_not_executed(tmp_path, monkeypatch):
    """The user is not asked to allow it either."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    folder = Path(shutil.copytree(embedded_path("bert-mini"), tmp_path / "model"))
    settings = json.loads((folder / "config.json").read_text()) | {"model_type": "mine"}
    classes = {"AutoConfig": "mine.Config", "AutoModelForMaskedLM": "mine.Model"}
    (folder / "config.json").write_text(json.dumps(settings | {"auto_map": classes}))
    (folder / "mine.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n")
    with pytest.raises(ValueError, match="contains custom code"):
        RefillModel(folder, "cpu")
    assert not (tmp_path / "ran").exists()
