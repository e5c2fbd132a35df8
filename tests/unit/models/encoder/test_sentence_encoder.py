"""Tokenisation, batching and pooling give each sentence the vector it has alone."""

import json

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from pydantic import ValidationError

from bsl.models.encoder import sentence_encoder as tokens_module
from bsl.models.encoder.config import EncoderConfig, read_json
from bsl.models.encoder.pooling import POOLINGS
from bsl.models.encoder.sentence_encoder import CachedEncoder, SentenceEncoder, token_ids
from bsl.models.encoder.texts import is_foreign, texts_of
from bsl.models.errors import EncoderError, NoEmbeddingError, TrainingError
from bsl.storage.assets.embedded import embedded_path
from tests.every import every
from tests.fake_processes import as_process
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, WIDTH, tiny_encoder, write_tiny

TEXTS = ORIGINALS + BACK_DE + BACK_FR + ["A man.", "dogs"]


@pytest.fixture(params=["bert", "modernbert"])
def loaded(request, tmp_path):
    return tiny_encoder(tmp_path, request.param)


def test_batch_not_divisible_among_processes_is_rejected(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path)
    tokens = token_ids(tokenizer, ORIGINALS, 24)
    for embed in (encoder.embed_rows, encoder.token_vectors):
        refused = pytest.raises(TrainingError, match="batch of 4 sentences cannot be divided equally among 3 processes")
        with as_process(0, of=3), refused:
            embed(tokens, np.arange(4))


def test_encode_reports_progress_restores_mode_and_accepts_empty_input(loaded):
    encoder, tokenizer = loaded
    seen = []
    encoder.train()
    encoder.encode(token_ids(tokenizer, TEXTS, 24), batch_tokens=1, on_progress=lambda *a: seen.append(a))
    assert encoder.training
    assert seen[-1][:2] == (len(TEXTS), len(TEXTS))
    assert SentenceEncoder(encoder, tokenizer).encode([]).shape == (0, WIDTH)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("men", r"unknown pooling 'men', expected mean, cls, .* joined by \+\. Did you mean 'mean'\?"),
        ("cls+", "unknown pooling '', expected mean"),
        ("cls+maxx", r"unknown pooling 'maxx', .* Did you mean 'max'\?"),
        ("cls+first-last", "pooling first-last cannot be joined, expected mean"),
    ],
)
def test_other_poolings_are_refused_with_the_closest_name(name, message):
    with pytest.raises(ValidationError, match=message):
        EncoderConfig(model="x", pooling=name)


@pytest.mark.parametrize("pooling", ["mean", "mean-sqrt", "weighted", "mean-after-first"])
def test_mean_pooling_without_tokens_returns_zero(pooling):
    """sentence-transformers does the same: it divides by at least 1e-9."""
    tokens_BTD, mask_BT = torch.randn(2, 3, 4), torch.tensor([[1, 1, 1], [1, 0, 0]])
    few, none = POOLINGS[pooling].pool(tokens_BTD, mask_BT, 0 if pooling == "mean-after-first" else 1)
    assert torch.isfinite(few).all()
    assert (few != 0).all()
    assert (none == 0).all()


@every(
    [
        (tuple(ORIGINALS),),
        np.array(ORIGINALS),
        pd.Series(ORIGINALS),
        pd.Index(ORIGINALS),
        pl.Series(ORIGINALS),
        pa.array(ORIGINALS),
        pa.chunked_array([ORIGINALS[:1], ORIGINALS[1:]]),
        datasets.Dataset.from_dict({"text": ORIGINALS})["text"],
    ]
)
def test_column_of_texts_is_the_list(column):
    assert list(texts_of(column)) == ORIGINALS


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a man", r"'a man' is a string, expected a list of strings: \[text\]"),
        (b"a man", r"texts is a bytes .*text\.decode"),
        (3, r"texts is a int \(3\), expected a list of strings"),
        (pd.DataFrame({"text": []}), r'texts is a DataFrame .*column: list\(table\["column"\]\)'),
        (pl.DataFrame({"text": ["a"]}), "texts is a DataFrame .*Pass one column"),
        (pa.table({"text": ["a"]}), "texts is a Table .*Pass one column"),
        (datasets.Dataset.from_dict({"text": ["a"]}), "texts is a Dataset .*Pass one column"),
        ({"text": "a"}, r"texts is a dict .*Pass list\(texts\.values\(\)\)"),
        ((text for text in ["a"]), r"texts is a generator .*Pass list\(texts\)"),
        ({"a"}, r"texts is a set .*Pass list\(texts\)"),
        (np.array([["a", "b"]]), r"array of one dimension\. Pass texts\.ravel\(\)\.tolist\(\)"),
        ([("a", "b")], r"text 0 is a tuple \(\('a', 'b'\)\), expected a string"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_but_a_column_of_texts_is_refused_with_what_to_pass(texts, message):
    with pytest.raises(TypeError, match=message):
        texts_of(texts)


@pytest.mark.parametrize("prompt", ["", "A man "])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "is None, expected a string"),
        (float("nan"), "is nan, expected a string"),
        (b"a", "is b'a', expected a string"),
        ("a \ud800", r"contains half of a character \(a lone surrogate\) at position 2"),
    ],
)
def test_invalid_text_error_names_its_row(tmp_path, monkeypatch, bad, message, prompt):
    monkeypatch.setattr(tokens_module, "CHUNK", 2)
    encoder, tokenizer = tiny_encoder(tmp_path)
    encoder.config = encoder.config.model_copy(update={"prompt": prompt})
    with pytest.raises(NoEmbeddingError, match=f"text 3 {message}") as refusal:
        SentenceEncoder(encoder, tokenizer).encode(["A man.", "A dog.", "Snow.", bad, None])
    assert refusal.value.number == 3


@pytest.mark.parametrize("used_before", [False, True])
def test_tokenise_leaves_the_tokenizer_unchanged(tmp_path, used_before):
    tokenizer = tiny_encoder(tmp_path)[1]
    if used_before:
        tokenizer(TEXTS, padding="max_length", truncation=True, max_length=12)
    before = tokenizer.backend_tokenizer.to_str()
    token_ids(tokenizer, TEXTS, 7)
    assert tokenizer.backend_tokenizer.to_str() == before


def test_truncation_preserves_the_final_special_token(loaded):
    _, tokenizer = loaded
    tokens = token_ids(tokenizer, ["a man " * 50, "dogs"], 8)
    assert tokens.lengths.tolist() == [8, 3]
    ids, mask = tokens.padded(np.array([1, 0]))
    assert mask.tolist() == [[1, 1, 1, 0, 0, 0, 0, 0], [1] * 8]
    assert ids[0, 3:].eq(tokenizer.pad_token_id).all()
    assert ids[1, -1] == tokenizer.sep_token_id
    tokenizer.pad_token = None
    with pytest.raises(EncoderError, match="no padding token"):
        token_ids(tokenizer, ["a man"], 24)


def test_nan_embedding_raises_encoder_error(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path)
    with torch.no_grad():
        encoder.backbone.embeddings.word_embeddings.weight[tokenizer.convert_tokens_to_ids("dogs")] = float("nan")
    with pytest.raises(EncoderError, match=r"text 1 has an embedding that is not finite \(1 of 2 texts\)"):
        SentenceEncoder(encoder, tokenizer).encode(["a man", "dogs"])


def test_reloading_does_not_add_a_second_lower_case_step(tmp_path):
    config = EncoderConfig(model="x", lower_case=True)
    encoder = SentenceEncoder.load(embedded_path("bert-mini"), config)
    encoder.save(tmp_path)
    for loaded in (encoder, SentenceEncoder.load(tmp_path, config)):
        normalizer = json.loads(loaded.tokenizer.backend_tokenizer.to_str())["normalizer"]
        assert [step["type"] for step in normalizer["normalizers"]] == ["Lowercase", "BertNormalizer"]


def test_merged_weights_interpolate_between_both_encoders(tmp_path):
    start, trained = (SentenceEncoder(*tiny_encoder(tmp_path / str(seed), seed=seed)) for seed in (0, 1))
    between = start.merged(trained, 0.25).network.state_dict()
    first, second = start.network.state_dict(), trained.network.state_dict()
    for name, weight in between.items():
        expected = 0.75 * first[name].double() + 0.25 * second[name].double()
        assert torch.allclose(weight.double(), expected, atol=1e-7), name
    for share, end in ((0.0, start), (1.0, trained)):
        assert (start.merged(trained, share).encode(ORIGINALS) == end.encode(ORIGINALS)).all()
    other = SentenceEncoder(*tiny_encoder(tmp_path / "two", "modernbert"))
    with pytest.raises(EncoderError, match="weights differ in names or shapes"):
        start.merged(other, 0.5)


@pytest.mark.parametrize(
    ("prompts", "used", "default"),
    [
        ({"query": "query: ", "passage": "passage: "}, "query: ", "query"),
        ({"query": "query: "}, "title: ", "default"),
        ({"query": "query: "}, "", None),
        ({}, "", None),
    ],
)
def test_save_writes_all_prompts_and_marks_the_default(tmp_path, prompts, used, default):
    network, tokenizer = tiny_encoder(tmp_path / "start")
    network.config = network.config.model_copy(update={"prompt": used})
    SentenceEncoder(network, tokenizer, prompts).save(tmp_path / "made")
    saved = read_json(tmp_path / "made" / "config_sentence_transformers.json")
    own = {default: used} if default else {}
    assert saved == {"similarity_fn_name": "cosine", "prompts": prompts | own, "default_prompt_name": default}
    again = SentenceEncoder.load(tmp_path / "made")
    assert (again.prompt, again.prompts) == (used, prompts | own)


def test_cached_encoder_embeds_each_text_once(tmp_path):
    network, tokenizer = tiny_encoder(tmp_path)
    cached = CachedEncoder(SentenceEncoder(network, tokenizer), device="cpu")
    first = cached([ORIGINALS[0], ORIGINALS[1], ORIGINALS[0]])
    assert (first[0] == first[2]).all()
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    assert (cached([ORIGINALS[1]]) == first[1]).all()


@pytest.mark.parametrize("prompt", ["", "represent the sentence: "])
def test_texts_of_another_script_are_unknown(prompt):
    config = EncoderConfig(model="embedded:mini-sentence", prompt=prompt)
    encoder = SentenceEncoder.load(embedded_path("mini-sentence"), config)
    texts = ["A man plays a guitar.", "สวัสดีครับ", "日本 tea", "日本 tea or green tea", "Größe", "👍", "..."]
    encoder.tokenizer.backend_tokenizer.enable_truncation(99)
    rules = encoder.tokenizer.backend_tokenizer.to_str()
    assert encoder.are_unknown(encoder.tokenize(texts)).tolist() == [False, True, True, False, False, True, False]
    assert encoder.tokenizer.backend_tokenizer.to_str() == rules  # a saved folder has its settings


def test_tokenizer_of_bytes_knows_every_text(tmp_path):
    encoder = SentenceEncoder.load(write_tiny(tmp_path, "bert"), EncoderConfig(model="tiny"))
    encoder.own_tokenizer.eos_token = encoder.own_tokenizer.unk_token  # as GPT-2's, which knows all bytes
    assert not encoder.are_unknown(encoder.tokenize(["สวัสดีครับ"])).any()


@every(
    [
        ("สวัสดีครับ 43", True),
        ("今日は晴れ tea", True),
        ("привет", True),
        ("今日は tea", False),
        ("Größe 日", False),
        ("👍 ... 12", False),
        ("", False),
    ]
)
def test_text_is_foreign_if_most_letters_are_not_latin(text, expected):
    assert is_foreign(text) == expected
