"""Read and write sentence-transformers' WordEmbeddings: a table of word vectors, optionally with a weight per word.

wordembedding_config.json       maximal length, and the tokenizer's class
whitespacetokenizer_config.json the words in the order of the rows, the stop words, and the case
model.safetensors               `emb_layer.weight`

Sentences are split at whitespace. A word that the table lacks is looked up without surrounding punctuation, then in
lower case. A sentence without any known word has the zero vector: a row of zeros appended to the table. Weights
(module WordWeights) make a weighted mean: Σ w·x / Σ w.

Shapes: V words, B sentences, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from bsl.models.encoder.config import LONGEST, read_json
from bsl.models.encoder.heads import Head
from bsl.models.encoder.pooling import MIN_DIVISOR
from bsl.models.encoder.serialization.modules import THROUGH_PYTHON
from bsl.models.encoder.serialization.pooling_modules import word_weights
from bsl.models.encoder.static import StaticTable, WhitespaceTokenizer
from bsl.models.encoder.transformer import refuse_dropout
from bsl.models.encoder.weights import WORD_WEIGHTS, read_weights, write_json, write_weights
from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    from bsl.models.encoder.config import EncoderConfig

KIND: Final = "WordEmbeddings"
SETTINGS: Final = "wordembedding_config.json"
_WORDS: Final = "whitespacetokenizer_config.json"
_TOKENIZER: Final = "WhitespaceTokenizer"
_CLASS: Final = "sentence_transformers.models.tokenizer.WhitespaceTokenizer.WhitespaceTokenizer"


class DivideByMeanWeight(Head):
    """Divides the mean of weighted vectors by the mean of their weights, which is the last dimension.

    Used if a word table has weights; saved folders have a module WordWeights before pooling instead.
    """

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Map (B, D + 1) to (B, D)."""
        return x_BD[:, :-1] / x_BD[:, -1:].clamp(min=MIN_DIVISOR)

    def width_from(self, width: int) -> int:
        """Return the input width less 1."""
        return width - 1


def longest_input(folder: Path) -> int:
    """Return the maximal length of a table's input, in words.

    Raises:
        EncoderError: The table needs a tokenizer that is not supported.
    """
    settings = read_json(folder / SETTINGS)
    if (kind := str(settings["tokenizer_class"]).rpartition(".")[2]) != _TOKENIZER:
        raise EncoderError(f"{folder}: tokenizer {kind}, expected {_TOKENIZER}. {THROUGH_PYTHON}.")
    return min(int(settings["max_seq_length"]), LONGEST)


def load_word_embeddings(
    folder: Path, weights: Path | None, config: EncoderConfig
) -> tuple[StaticTable, WhitespaceTokenizer, list[Head]]:
    """Load a table in fp32, its tokenizer, and the head that divides by the words' weights, if any.

    Args:
        folder: Folder of the table.
        weights: Folder of the words' weights; None for a table without weights.
        config: Must not have a dropout rate.

    Raises:
        EncoderError: A file is missing or damaged, there are more words than rows, or dropout is configured.
    """
    refuse_dropout(folder, config, "a static table")
    weight_VD = read_weights(folder)[WORD_WEIGHTS].float()
    words = read_json(folder / _WORDS)
    if len(words["vocab"]) > len(weight_VD):
        raise EncoderError(
            f"{folder}: {len(words['vocab'])} words and a table of {len(weight_VD)} rows, expected a row for each "
            "word. Check that both files are of the same model."
        )
    tokenizer = WhitespaceTokenizer(words["vocab"], words["stop_words"], len(weight_VD), lower=words["do_lower_case"])
    table = StaticTable(torch.cat([weight_VD, weight_VD.new_zeros(1, weight_VD.shape[1])]), len(weight_VD))
    if weights is None:
        return table, tokenizer, []
    weights_V = word_weights(weights)
    if len(weights_V) != len(weight_VD):
        raise EncoderError(
            f"{weights}: {len(weights_V)} word weights for a table of {len(weight_VD)} rows, expected one for each "
            "row. Check that both files are of the same model."
        )
    table.set_row_weights(torch.cat([weights_V, weights_V.new_zeros(1)]))  # the last row is no word
    return table, tokenizer, [DivideByMeanWeight()]


def write_word_embeddings(table: StaticTable, words: WhitespaceTokenizer, length: int, folder: Path) -> None:
    """Write a table, its words and the maximal length."""
    settings = {"tokenizer_class": _CLASS, "update_embeddings": False, "max_seq_length": length}
    write_json(folder / SETTINGS, settings)
    tokenizer = {"vocab": list(words.words), "stop_words": sorted(words.stop), "do_lower_case": words.lower}
    write_json(folder / _WORDS, tokenizer)
    write_weights(folder, {WORD_WEIGHTS: table.embedding.weight[:-1]})
