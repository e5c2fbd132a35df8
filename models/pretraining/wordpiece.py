"""A lower-cased WordPiece vocabulary learnt from text, as a tokenizer that transformers loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerFast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def train_wordpiece(texts: Iterable[str], size: int, *, accents: bool = False) -> PreTrainedTokenizerFast:
    """Learn `size` pieces, the five special ones (ids 0–4) included.

    Args:
        texts: Sentences; lower-cased here.
        size: Entries of the vocabulary.
        accents: Keep them, since in most languages they tell words apart; without, as BERT-uncased does.

    Returns:
        A tokenizer that frames a sentence as `[CLS] … [SEP]`.
    """
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=not accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL, min_frequency=2, limit_alphabet=200)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.decoder = decoders.WordPiece()
    frame = [(name, SPECIAL.index(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=frame
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )


def encode(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], max_tokens: int) -> list[np.ndarray]:
    """Token ids of each text, framed and cut to `max_tokens`; texts of fewer than three inner tokens fall away."""
    # Cut here: the tokenizer would remember its own truncation and carry it into every later export.
    rows = tokenizer(list(texts), return_attention_mask=False)["input_ids"]
    end = [tokenizer.sep_token_id]
    cut = (row if len(row) <= max_tokens else row[: max_tokens - 1] + end for row in rows)
    return [np.array(row, dtype=np.int32) for row in cut if len(row) >= 5]
