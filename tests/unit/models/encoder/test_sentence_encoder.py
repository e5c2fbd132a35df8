"""Tokenisation, batching and pooling give each sentence the vector it has alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bsl.models.encoder import sentence_encoder as tokens_module
from bsl.models.encoder.config import EncoderConfig, read_json
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.pooling import POOLINGS
from bsl.models.encoder.sentence_encoder import CachedEncoder, SentenceEncoder, token_ids
from bsl.models.errors import EncoderError, NoEmbeddingError, TrainingError
from tests.fake_processes import as_process
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, WIDTH, tiny_encoder, write_tiny

TEXTS = ORIGINALS + BACK_DE + BACK_FR + ["A man.", "dogs"]


@pytest.fixture(params=["bert", "modernbert"])
def loaded(request, tmp_path):
    return tiny_encoder(tmp_path, request.param)


def one_by_one(encoder, tokenizer, texts):
    with torch.inference_mode():
        rows = [encoder(**_named(tokenizer(t, return_tensors="pt", truncation=True, max_length=24)))[0] for t in texts]
    return torch.stack(rows).numpy()


def _named(call):
    return {"ids_BT": call["input_ids"], "mask_BT": call["attention_mask"]}


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
def test_encode_vectors_are_independent_of_batch_tokens(loaded, batch_tokens):
    encoder, tokenizer = loaded
    vectors = encoder.encode(token_ids(tokenizer, TEXTS, 24), batch_tokens=batch_tokens)
    assert vectors.shape == (len(TEXTS), WIDTH)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, one_by_one(encoder, tokenizer, TEXTS), rtol=0, atol=1e-6)


def test_micro_batches_equal_one_padded_pass(loaded):
    encoder, tokenizer = loaded
    tokens = token_ids(tokenizer, TEXTS, 24)
    rows = np.array([5, 0, 13, 7, 7, 2])
    with torch.inference_mode():
        padded = encoder(*tokens.padded(rows))
        torch.testing.assert_close(encoder.embed(tokens, rows, 30), padded, rtol=0, atol=1e-6)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", ["cls", "first-last", "mean-after-first"])
def test_micro_batches_pool_as_configured(loaded, pooling, normalize):
    encoder, tokenizer = loaded
    config = encoder.config.model_copy(update={"pooling": pooling, "normalize": normalize})
    encoder = Encoder(encoder.backbone, config)
    tokens, rows = token_ids(tokenizer, TEXTS, 24), np.array([5, 0, 13, 7, 7, 2])
    with torch.inference_mode():
        ids_BT, mask_BT = tokens.padded(rows)
        states = encoder.backbone(input_ids=ids_BT, attention_mask=mask_BT, output_hidden_states=True)
        last = states.last_hidden_state
        mixed = (states.hidden_states[1] + last) / 2  # 0 is the embedding layer
        real = mask_BT.unsqueeze(-1)
        expected = {
            "cls": last[:, 0],
            "first-last": (mixed * real).sum(1) / real.sum(1),
            "mean-after-first": (last * real)[:, 1:].sum(1) / (real.sum(1) - 1),
        }[pooling]
        if normalize:
            expected = expected / expected.norm(dim=1, keepdim=True)
        torch.testing.assert_close(encoder.embed(tokens, rows, 30), expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(encoder(ids_BT, mask_BT), expected, rtol=0, atol=1e-6)
    assert len(states.hidden_states) == 3


def test_batch_not_divisible_among_processes_is_rejected(loaded):
    encoder, tokenizer = loaded
    tokens = token_ids(tokenizer, ORIGINALS, 24)
    refused = pytest.raises(TrainingError, match="batch of 4 sentences cannot be divided equally among 3 processes")
    with as_process(0, of=3), refused:
        encoder.embed_rows(tokens, np.arange(4))


def test_gradients_of_micro_batches_equal_one_padded_pass(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path)
    tokens, rows = token_ids(tokenizer, TEXTS, 24), np.array([5, 0, 13, 7])
    weights = torch.randn(4, WIDTH)
    found = torch.autograd.grad((encoder.embed(tokens, rows, 20) * weights).sum(), list(encoder.parameters()))
    expected = torch.autograd.grad((encoder(*tokens.padded(rows)) * weights).sum(), list(encoder.parameters()))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_encode_reports_progress_restores_mode_and_accepts_empty_input(loaded):
    encoder, tokenizer = loaded
    seen = []
    encoder.train()
    encoder.encode(token_ids(tokenizer, TEXTS, 24), batch_tokens=1, on_progress=lambda *a: seen.append(a))
    assert encoder.training
    assert seen[-1][:2] == (len(TEXTS), len(TEXTS))
    assert SentenceEncoder(encoder, tokenizer).encode([]).shape == (0, WIDTH)


def test_bf16_encoding_is_opt_in_and_close_to_fp32(loaded):
    encoder, tokenizer = loaded
    exact, short = (
        SentenceEncoder(encoder, tokenizer).encode(TEXTS),
        SentenceEncoder(encoder, tokenizer).encode(TEXTS, bf16=True),
    )
    np.testing.assert_array_equal(exact, SentenceEncoder(encoder, tokenizer).encode(TEXTS))
    assert 0 < np.abs(exact - short).max() < 0.05


@pytest.mark.parametrize("pooling", ["mean", "mean-sqrt", "weighted", "mean-after-first"])
def test_mean_pooling_without_tokens_returns_zero(pooling):
    """sentence-transformers does the same: it divides by at least 1e-9."""
    tokens_BTD, mask_BT = torch.randn(2, 3, 4), torch.tensor([[1, 1, 1], [1, 0, 0]])
    skipped = 0 if pooling == "mean-after-first" else 1
    few, none = POOLINGS[pooling].pool(tokens_BTD, mask_BT, skipped)
    assert torch.isfinite(few).all()
    assert (few != 0).all()
    assert (none == 0).all()


@pytest.mark.parametrize("prompt", ["", "A man "])
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (None, "is None, expected a string"),
        (7, "is 7, expected a string"),
        ("a \ud800", "contains half of a character \\(a lone surrogate\\) at position 2"),
    ],
)
def test_invalid_text_error_names_its_row(loaded, monkeypatch, bad, said, prompt):
    monkeypatch.setattr(tokens_module, "CHUNK", 2)
    encoder, tokenizer = loaded
    encoder.config = encoder.config.model_copy(update={"prompt": prompt})
    with pytest.raises(NoEmbeddingError, match=f"text 3 {said}") as refusal:
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
    tokenizer(TEXTS[0], truncation=True, max_length=9)
    assert tokenizer.backend_tokenizer.to_str() != before


def test_truncation_preserves_the_final_special_token(loaded):
    _, tokenizer = loaded
    tokens = token_ids(tokenizer, ["a man " * 50, "dogs"], 8)
    assert tokens.lengths.tolist() == [8, 3]
    ids, mask = tokens.padded(np.array([1, 0]))
    assert mask.tolist() == [[1, 1, 1, 0, 0, 0, 0, 0], [1] * 8]
    assert ids[0, 3:].eq(tokenizer.pad_token_id).all()
    assert ids[1, -1] == tokenizer.sep_token_id


def test_missing_pooler_is_accepted_and_loading_is_deterministic(tmp_path):
    folder = write_tiny(tmp_path)
    weights = {n: w for n, w in load_file(folder / "model.safetensors").items() if "pooler" not in n}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    one = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=24)).network
    two = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=24)).network
    assert not any("pooler" in name for name in one.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_invalid_folder_max_length_and_tokenizer_raise_encoder_error(tmp_path):
    with pytest.raises(EncoderError, match=r"no config\.json"):
        SentenceEncoder.load(tmp_path, EncoderConfig(model="x"))
    folder = write_tiny(tmp_path / "m")
    with pytest.raises(EncoderError, match=r"accepts at most 64 tokens, but encoder\.max_length is 65"):
        SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=65))
    tokenizer = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=24)).tokenizer
    tokenizer.pad_token = None
    with pytest.raises(EncoderError, match="no padding token"):
        token_ids(tokenizer, ["a man"], 24)
    (folder / "config.json").write_text(json.dumps({"model_type": "no-such-model"}))
    with pytest.raises(EncoderError, match="cannot be loaded"):
        SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=24))


def test_nan_embedding_raises_encoder_error(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path)
    with torch.no_grad():
        encoder.backbone.embeddings.word_embeddings.weight[tokenizer.convert_tokens_to_ids("dogs")] = float("nan")
    with pytest.raises(EncoderError, match=r"text 1 has an embedding that is not finite \(1 of 2 texts\)"):
        SentenceEncoder(encoder, tokenizer).encode(["a man", "dogs"])


def test_tokenizer_ids_beyond_the_embedding_table_are_rejected(tmp_path):
    """Otherwise the first text with such a token raises an IndexError, and on a GPU a device assertion."""
    encoder, tokenizer = tiny_encoder(tmp_path)
    rows = len(encoder.backbone.embeddings.word_embeddings.weight)
    tokenizer.add_tokens(["brandnew"])
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match=f"ids up to {rows}, but the embedding table has only {rows} rows"):
        SentenceEncoder.load(tmp_path, EncoderConfig(model="x", max_length=24))


def test_a_single_string_is_refused(loaded):
    encoder = SentenceEncoder(*loaded)
    with pytest.raises(TypeError, match="'a dog' is a string, expected a list of strings"):
        encoder.encode("a dog")


if TYPE_CHECKING:
    from pathlib import Path


def test_merged_weights_interpolate_between_both_encoders(tmp_path: Path) -> None:
    start, trained = (SentenceEncoder(*tiny_encoder(tmp_path / str(seed), seed=seed)) for seed in (0, 1))
    between = start.merged(trained, 0.25).network.state_dict()
    first, second = start.network.state_dict(), trained.network.state_dict()
    for name, weight in between.items():
        expected = 0.75 * first[name].double() + 0.25 * second[name].double()
        assert torch.allclose(weight.double(), expected, atol=1e-7), name
    for share, end in ((0.0, start), (1.0, trained)):
        assert (start.merged(trained, share).encode(ORIGINALS) == end.encode(ORIGINALS)).all()


def test_merging_encoders_of_different_shapes_is_rejected(tmp_path: Path) -> None:
    start = SentenceEncoder(*tiny_encoder(tmp_path / "one"))
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
def test_save_writes_all_prompts_and_marks_the_default(tmp_path: Path, prompts, used, default) -> None:
    network, tokenizer = tiny_encoder(tmp_path / "start")
    network.config = network.config.model_copy(update={"prompt": used})
    SentenceEncoder(network, tokenizer, prompts).save(tmp_path / "made")
    saved = read_json(tmp_path / "made" / "config_sentence_transformers.json")
    own = {default: used} if default else {}
    assert saved == {"similarity_fn_name": "cosine", "prompts": prompts | own, "default_prompt_name": default}
    again = SentenceEncoder.load(tmp_path / "made")
    assert (again.prompt, again.prompts) == (used, prompts | own)


def test_cached_encoder_embeds_each_text_once(tmp_path: Path) -> None:
    network, tokenizer = tiny_encoder(tmp_path / "one")
    cached = CachedEncoder(SentenceEncoder(network, tokenizer), device="cpu")
    first = cached([ORIGINALS[0], ORIGINALS[1], ORIGINALS[0]])
    assert (first[0] == first[2]).all()
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    assert (cached([ORIGINALS[1]]) == first[1]).all()
