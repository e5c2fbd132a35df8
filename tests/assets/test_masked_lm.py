"""Pre-training of the embedded masked LM: tokenizer, masks, training and export."""

import pytest
import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast

from assets.training.config import LearningConfig
from assets.training.loop import export_half, pretrain
from assets.training.masked_lm import EncoderShape, MaskedSentences, build_masked_lm, evaluate_masked_lm
from assets.training.vocabulary import encode_wordpieces, train_wordpiece

TEXTS = [
    "A man is playing a guitar.",
    "The dog runs across the green field.",
    "Two children play in the water.",
    "A woman reads a long book at home.",
] * 5
SHAPE = EncoderShape(layers=2, width=32, heads=2, feed_forward=32, batch_tokens=100, max_tokens=16)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return train_wordpiece(TEXTS, 120)


def test_encoding_adds_special_tokens_lowercases_and_truncates(tokenizer):
    (row,) = encode_wordpieces(tokenizer, ["A MAN is playing a guitar."], 6)
    assert len(row) == 6
    assert (row[0], row[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
    assert tokenizer("A MAN")["input_ids"] == tokenizer("a man")["input_ids"]


def test_masked_lm_learns_and_its_export_ignores_padding(tokenizer, tmp_path):
    model = build_masked_lm(SHAPE, tokenizer, seed=0)
    sentences = MaskedSentences(encode_wordpieces(tokenizer, TEXTS, 16), tokenizer, SHAPE, seed=0)
    before = evaluate_masked_lm(model, sentences, seed=1)["loss"]
    learning = LearningConfig(steps=80, peak_lr=5e-3, warmup_steps=5, precision="fp32")
    pretrain(model, sentences, learning, lambda done, total, detail: None)
    assert evaluate_masked_lm(model, sentences, seed=1)["loss"] < before - 1
    export_half(model, tokenizer, tmp_path)
    encoder, reader = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert encoder.dtype == torch.float32
    alone = encoder.eval()(**reader(TEXTS[:1], return_tensors="pt")).last_hidden_state
    padded = encoder(**reader([TEXTS[0], "word " * 70], padding=True, return_tensors="pt")).last_hidden_state
    torch.testing.assert_close(padded[:1, : alone.shape[1]], alone, rtol=1e-4, atol=1e-5)
