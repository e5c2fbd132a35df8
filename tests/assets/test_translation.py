"""Pre-training of the embedded translators: vocabulary, loss, training, export and resume."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import MarianMTModel, MarianTokenizer

from assets.training import loop
from assets.training.config import LearningConfig
from assets.training.loop import export_half, pretrain
from assets.training.translation import EncodedPairs, TranslationModelConfig, TranslationPairs, build_translator
from assets.training.vocabulary import encode_pieces, train_vocabulary
from bsl.models.errors import ResumeError
from bsl.models.objectives.language_modeling.masked_lm import linear_cross_entropy
from bsl.models.training.snapshots import read_snapshot

ENGLISH = ["a dog runs", "a cat sleeps", "the man eats bread", "the woman reads a book", "a child sings a song"]
GERMAN = [
    "ein Hund rennt",
    "eine Katze schläft",
    "der Mann isst Brot",
    "die Frau liest ein Buch",
    "ein Kind singt ein Lied",
]
SHAPE = TranslationModelConfig(
    encoder_layers=1, decoder_layers=1, width=32, heads=2, feed_forward=64, batch_tokens=120, joined=0.2
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> MarianTokenizer:
    return train_vocabulary(ENGLISH + GERMAN, 48, ["deu", "fra"], tmp_path_factory.mktemp("vocabulary"))


def pairs(tokenizer: MarianTokenizer, share: float = 1.0) -> TranslationPairs:
    prefix = tokenizer.get_vocab()[">>deu<<"]
    encoded = EncodedPairs(encode_pieces(tokenizer, ENGLISH), encode_pieces(tokenizer, GERMAN), prefix, share)
    return TranslationPairs([encoded], tokenizer, SHAPE, seed=0)


def ignore(done: int, total: int, detail: str) -> None:
    pass


def test_vocabulary_has_special_tokens_of_opus_mt(tokenizer):
    vocabulary = tokenizer.get_vocab()
    assert len(vocabulary) == 48
    assert (vocabulary["</s>"], vocabulary["<unk>"], vocabulary["<pad>"]) == (0, 1, 47)
    assert ">>fra<<" in tokenizer.supported_language_codes


def test_fast_encoding_equals_the_tokenizer(tokenizer):
    framed = tokenizer([f">>deu<< {text}" for text in ENGLISH])["input_ids"]
    for row, fast in zip(framed, encode_pieces(tokenizer, ENGLISH), strict=True):
        assert row == [tokenizer.get_vocab()[">>deu<<"], *fast, tokenizer.eos_token_id]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_fused_loss_and_gradients_equal_cross_entropy(smoothing):
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(300, 8, generator=generator, requires_grad=True)
    weight = torch.randn(20, 8, generator=generator, requires_grad=True)
    labels = torch.randint(0, 20, (300,), generator=generator)
    plain = torch.nn.functional.cross_entropy(states @ weight.T, labels, label_smoothing=smoothing)
    expected = torch.autograd.grad(plain, [states, weight])
    fused = linear_cross_entropy(states, weight, labels, smoothing)
    torch.testing.assert_close(fused, plain)
    for found, gradient in zip(torch.autograd.grad(fused, [states, weight]), expected, strict=True):
        torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-6)


def test_share_sets_the_pairs_per_epoch_and_epochs_differ(tokenizer):
    drawn = np.concatenate(pairs(tokenizer, share=1.6).plan(0))
    assert len(drawn) == 8
    assert set(drawn[:, 0]) == set(range(5))
    assert not np.array_equal(np.concatenate(pairs(tokenizer).plan(0)), np.concatenate(pairs(tokenizer).plan(1)))


def test_translator_learns_pairs_and_its_export_translates_them(tokenizer, tmp_path):
    model = build_translator(SHAPE, tokenizer, seed=0)
    learning = LearningConfig(steps=100, peak_lr=8e-3, warmup_steps=10, precision="fp32")
    pretrain(model, pairs(tokenizer), learning, ignore)
    assert not model.model.shared.weight[-1].any(), "CTranslate2 starts decoding from zeros, so <pad> must stay zero"
    export_half(model, tokenizer, tmp_path / "model")
    loaded = MarianMTModel.from_pretrained(tmp_path / "model")
    assert loaded.dtype == torch.float32
    reader = MarianTokenizer.from_pretrained(tmp_path / "model")
    inputs = reader([f">>deu<< {text}" for text in ENGLISH], return_tensors="pt", padding=True)
    output = reader.batch_decode(loaded.eval().generate(**inputs, max_length=30), skip_special_tokens=True)
    assert sum(found == right for found, right in zip(output, GERMAN, strict=True)) >= 4


def dying_after(steps: int, loss):
    """Return the loss function, interrupted after a number of batches."""
    left = iter(range(steps))

    def dying(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return loss(*arguments)

    return dying


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_resumed_run_equals_an_uninterrupted_run(tokenizer, tmp_path: Path, monkeypatch, optimizer):
    learning = LearningConfig(optimizer=optimizer, steps=8, peak_lr=1e-3, warmup_steps=2, precision="fp32")
    whole, broken = (build_translator(SHAPE, tokenizer, seed=0) for _ in range(2))
    pretrain(whole, pairs(tokenizer), learning, ignore)
    monkeypatch.setattr(loop, "SAVE_MINUTES", 0.0)  # after every step
    killed = pairs(tokenizer)
    monkeypatch.setattr(killed, "loss", dying_after(3, killed.loss))
    with pytest.raises(KeyboardInterrupt):
        pretrain(broken, killed, learning, ignore, tmp_path)
    assert read_snapshot(max(tmp_path.iterdir())).step == 3
    resumed = build_translator(SHAPE, tokenizer, seed=0)
    assert pretrain(resumed, pairs(tokenizer), learning, ignore, tmp_path).step == 8
    for expected, parameter in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(parameter, expected)


def test_snapshot_of_another_run_is_rejected(tokenizer, tmp_path: Path):
    learning = LearningConfig(steps=2, peak_lr=1e-3, precision="fp32")
    pretrain(build_translator(SHAPE, tokenizer, seed=0), pairs(tokenizer), learning, ignore, tmp_path)
    others = [(5, 1.0, learning), (0, 0.5, learning), (0, 1.0, learning.model_copy(update={"steps": 3}))]
    for seed, share, config in others:
        with pytest.raises(ResumeError, match=r"step-00000002: the snapshot \(step 2\) is of another run"):
            pretrain(build_translator(SHAPE, tokenizer, seed), pairs(tokenizer, share), config, ignore, tmp_path)


def test_damaged_snapshot_is_skipped(tokenizer, tmp_path: Path):
    learning = LearningConfig(steps=4, peak_lr=1e-3, precision="fp32")
    whole, resumed = (build_translator(SHAPE, tokenizer, seed=0) for _ in range(2))
    pretrain(whole, pairs(tokenizer), learning, ignore, tmp_path)
    file = tmp_path / "step-00000004" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert pretrain(resumed, pairs(tokenizer), learning, ignore, tmp_path).step == 4
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))
