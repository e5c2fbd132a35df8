"""A small word-embedding table in the format of sentence-transformers."""

from __future__ import annotations

import torch
from sentence_transformers.sentence_transformer import modules as st

WIDTH = 24
KNOWN = ("PADDING_TOKEN", "A", "a", "man", "dog", "woman", "is", "the", "on", ".", "street.", "and", "The", "in")


def words(*, weighed: bool = False, lower: bool = False) -> list[torch.nn.Module]:
    """Return modules: a table with punctuation, stop words and an unused row, and optionally word weights."""
    table = torch.randn(len(KNOWN) + 1, WIDTH, generator=torch.Generator().manual_seed(1))
    cut = st.tokenizer.WhitespaceTokenizer(KNOWN, stop_words=["the", "on", "."], do_lower_case=lower)
    weights = st.WordWeights([*KNOWN, "[none]"], {"dog": 2.5, "man": 0.25, "is": 0.0}, unknown_word_weight=0.5)
    return [st.WordEmbeddings(cut, table.numpy()), *([weights] if weighed else [])]
