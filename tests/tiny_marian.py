"""A small but real MarianMT model in a folder: SentencePiece trained on sentences, weights from a seed.

Random weights translate nothing; they test order, batches, caps, loading and resuming. Their variance is larger than a
fresh model's, so that greedy outputs differ between sentences and between steps.
"""

import json
from pathlib import Path

import sentencepiece
import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

from bsl.models.translation.batching import BatchedTranslator
from bsl.models.translation.config import Resources, TranslatorConfig
from bsl.models.translation.loading import load_translator

NAMES = ("Anna", "Tom", "the teacher", "my neighbour", "a young woman", "the old man", "our doctor", "the girl in red")
ACTS = (
    "is reading a long book", "plays the guitar", "walks the dog", "has never seen the sea", "eats an apple",
    "wrote to her brother", "was waiting for the last train", "sings", "is asleep", "bought bread, milk and cheese",
)  # fmt: skip
PLACES = ("at home", "in the park near the river", "", "on a cold morning in January", "behind the church")

SENTENCES = [
    f"{name[0].upper()}{name[1:]} {act} {place}".strip() + "." for name in NAMES for act in ACTS for place in PLACES
]
"""400 plain sentences of very different lengths."""


def build_tiny_marian(
    folder: Path,
    *,
    seed: int = 1,
    codes: tuple[str, ...] = (),
    safetensors: bool = True,
) -> Path:
    """Write config, weights, vocabulary and SentencePiece models to ``folder`` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = _train_pieces(folder)
    vocab = {piece: number for number, piece in enumerate(["</s>", "<unk>", *codes, *pieces, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    options = {"source_lang": "en", "target_lang": "de", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(options), encoding="utf-8")
    _write_model(folder, vocab, seed, safetensors)
    MarianTokenizer.from_pretrained(folder)  # checks that transformers itself can read the folder
    return folder


def _train_pieces(folder: Path) -> list[str]:
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / "source"), vocab_size=90, minloglevel=2, num_threads=1
    )
    corpus.unlink()
    (folder / "source.vocab").unlink()
    (folder / "source.model").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    return [processor.id_to_piece(n) for n in range(processor.get_piece_size()) if not processor.is_control(n)][1:]


def _write_model(folder: Path, vocab: dict[str, int], seed: int, safetensors: bool) -> None:
    config = MarianConfig(
        vocab_size=len(vocab), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=128,
        pad_token_id=vocab["<pad>"], eos_token_id=0, decoder_start_token_id=vocab["<pad>"], forced_eos_token_id=0,
        scale_embedding=True, activation_function="swish", tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = MarianMTModel(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "embed_positions" not in name:
                weight.mul_(8.0)
        model.final_logits_bias[0, 0] = 1.5
    model.generation_config = GenerationConfig(  # like that of OPUS-MT models
        num_beams=4, max_length=128, bad_words_ids=[[vocab["<pad>"]]], forced_eos_token_id=0, renormalize_logits=True,
        pad_token_id=vocab["<pad>"], eos_token_id=0, decoder_start_token_id=vocab["<pad>"],
    )  # fmt: skip
    model.save_pretrained(folder)
    if not safetensors:
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()


def load_on_transformers(folder: Path, config: TranslatorConfig, token_budget: int | None = None) -> BatchedTranslator:
    """Load a translator with the transformers backend, on one core."""
    config = config.model_copy(update={"backend": "transformers"})
    return load_translator(folder, config, Resources("cpu", cores=1), folder / "unused", token_budget)
