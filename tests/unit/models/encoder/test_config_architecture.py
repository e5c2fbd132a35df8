"""A config.json without an architecture is read as BERT by its other fields, or refused before a run."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from bsl.flows.config import override
from bsl.flows.pipeline import run
from bsl.flows.recipes import recipe
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from bsl.models.objectives.language_modeling.config import MaskedLMConfig
from bsl.tasks.stage.progress import planning
from bsl.tasks.stage.run_context import RunContext
from tests.layouts import SMALL
from tests.tiny_heads import rewrite

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "man", "play", "##s", "guitar"]


@pytest.fixture
def folder(tmp_path):
    """Return a folder like Google's small BERTs; its path contains another architecture's name."""
    made = tmp_path / "albert-roberta"
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **SMALL)).save_pretrained(made)
    (made / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return made


def unnamed(folder, *without):
    gone = ("model_type", "architectures", *without)
    rewrite(folder / "config.json", lambda settings: {k: v for k, v in settings.items() if k not in gone})
    return folder


def config(folder):
    return EncoderConfig(model=str(folder), max_length=24)


def vectors(folder):
    return SentenceEncoder.load(folder, config(folder)).encode(["A man plays a guitar.", "a guitar"])


def test_bert_without_model_type_has_the_same_vectors_and_its_own_masked_lm_head(folder):
    named = vectors(folder)
    np.testing.assert_array_equal(vectors(unnamed(folder)), named)
    encoder = SentenceEncoder.load(folder, config(folder))
    head = MaskedLMConfig().build(encoder.network, encoder.tokenizer).head
    assert head.norm.weight.shape == (32,)
    assert head.linear.weight.shape == (32, 32)  # BERT's own head; a new one would map directly to the vocabulary


def test_unknown_architecture_is_rejected_before_the_run(folder, tmp_path):
    unnamed(folder, "type_vocab_size")
    site = RunContext(store=str(tmp_path / "store"), device="cpu")
    with planning(), pytest.raises(EncoderError, match="no model_type"):
        run(override(recipe("tiny"), {"encoder": {"model": str(folder)}}), site)
