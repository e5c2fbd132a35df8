"""A table of word vectors as sentence-transformers' WordEmbeddings has it, perhaps with a weight for each word.

wordembedding_config.json       longest input, and which tokenizer cuts sentences
whitespacetokenizer_config.json the words in the order of the rows, those that are passed over, and the case
model.safetensors               `emb_layer.weight`

Words are what stands between blanks; one that the table lacks is tried without the marks around it and then in lower
case. A sentence of unknown words alone has the zero vector, so a row of zeros follows the table's own. Weights
(module WordWeights) go into the mean: Σ w·x / Σ w.

Shapes: V words, B sentences, D width.
"""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import torch

from models.encoder.config import LONGEST
from models.encoder.files import WORD_WEIGHTS, read_json, read_weights, write_json, write_weights
from models.encoder.heads import Head
from models.encoder.pooling import LEAST
from models.encoder.saved_pooling import OTHERWISE
from models.encoder.static import StaticTable, refuse_dropout
from models.encoder.words import NOTHING
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from transformers import PreTrainedTokenizerBase

    from models.encoder.config import EncoderConfig

KIND: Final = "WordEmbeddings"
WEIGHTS: Final = "WordWeights"
SETTINGS: Final = "wordembedding_config.json"
_CUT: Final = "whitespacetokenizer_config.json"
_TOKENIZER: Final = "WhitespaceTokenizer"
_CLASS: Final = "sentence_transformers.models.tokenizer.WhitespaceTokenizer.WhitespaceTokenizer"
_KEY: Final = "emb_layer.weight"


class WhitespaceWords:
    """A tokenizer as far as encoders use one: texts to the rows of the words that a table has.

    Attributes:
        words: In the order of the rows; their number is the row of `pad_token`.
        stop: Words that are passed over.
        lower: Whether a text is lower-cased first.
    """

    pad_token = NOTHING
    is_fast = False
    all_special_ids: tuple[int, ...] = ()
    cls_token_id = sep_token_id = eos_token_id = mask_token_id = None

    def __init__(self, words: Sequence[str], stop: Iterable[str], rows: int, *, lower: bool) -> None:
        self.words, self.stop, self.lower = tuple(words), frozenset(stop), lower
        self.pad_token_id = rows
        self._rows = {word: row for row, word in enumerate(self.words)}

    def __call__(
        self, texts: str | Sequence[str], *, max_length: int | None = None, **_: object
    ) -> dict[str, list[int] | list[list[int]]]:
        """`input_ids` of a text, or of each text.

        Raises:
            TypeError, UnicodeError: One is no text.
        """
        if isinstance(texts, str):
            return {"input_ids": self._ids(texts)[:max_length]}
        return {"input_ids": [self._ids(text)[:max_length] for text in texts]}

    def __len__(self) -> int:
        return self.pad_token_id + 1

    def get_vocab(self) -> dict[str, int]:
        """Word → row."""
        return {**self._rows, NOTHING: self.pad_token_id}

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the words and how they are looked up, as sentence-transformers reads it."""
        cut = {"vocab": list(self.words), "stop_words": sorted(self.stop), "do_lower_case": self.lower}
        write_json(Path(folder) / _CUT, cut)

    def _ids(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is no text")
        text.encode()
        words = (text.lower() if self.lower else text).split()
        return [row for row in map(self._row, words) if row is not None]

    def _row(self, word: str) -> int | None:
        bare = word.strip(string.punctuation)
        for form in (word, bare, bare.lower()):
            if form in self.stop:
                return None
            if form and form in self._rows:
                return self._rows[form]
        return None


class ByWeights(Head):
    """Divides the mean of weighted vectors by the mean of their weights, which stands in the last dimension.

    Made where a table of words has weights; in a folder, these are a module before pooling.
    """

    level = "sentence"

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, D + 1) to (B, D)."""
        return x_BD[:, :-1] / x_BD[:, -1:].clamp(min=LEAST)

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> ByWeights:  # noqa: ARG003 - it has none
        """See `Head.build`."""
        return cls()

    def settings(self) -> dict[str, object]:
        """None."""
        return {}

    def width_from(self, width: int) -> int:
        """One less."""
        return width - 1


def longest_input(folder: Path) -> int:
    """The longest input of a table in words.

    Raises:
        EncoderError: Its sentences are cut by another tokenizer than is computed here.
    """
    settings = read_json(folder / SETTINGS)
    if (kind := str(settings["tokenizer_class"]).rpartition(".")[2]) != _TOKENIZER:
        raise EncoderError(f"{folder}: cuts sentences by {kind}, expected {_TOKENIZER}; {OTHERWISE}")
    return min(int(settings["max_seq_length"]), LONGEST)


def load_word_embeddings(folder: Path, config: EncoderConfig) -> tuple[StaticTable, PreTrainedTokenizerBase]:
    """Load a table in fp32 and what cuts sentences into its words.

    Raises:
        EncoderError: A file is missing or damaged, there are more words than rows, or dropout is asked for.
    """
    refuse_dropout(folder, config)
    weight_VD = read_weights(folder)[_KEY].float()
    cut = read_json(folder / _CUT)
    if len(cut["vocab"]) > len(weight_VD):
        raise EncoderError(
            f"{folder}: a table of {len(weight_VD)} rows and {len(cut['vocab'])} words, expected a row for each; "
            "check that they belong together"
        )
    tokenizer = WhitespaceWords(cut["vocab"], cut["stop_words"], len(weight_VD), lower=cut["do_lower_case"])
    table = StaticTable(torch.cat([weight_VD, weight_VD.new_zeros(1, weight_VD.shape[1])]), len(weight_VD))
    return table, cast("PreTrainedTokenizerBase", tokenizer)  # as far as it is used


def read_word_weights(folder: Path) -> torch.Tensor:
    """The weight of each row of a table, (V + 1,); that of a sentence without known words is 0."""
    weights_V = read_weights(folder)[WORD_WEIGHTS][:, 0].float()
    return torch.cat([weights_V, weights_V.new_zeros(1)])


def write_word_embeddings(table: StaticTable, words: WhitespaceWords, length: int, folder: Path) -> None:
    """Write a table, its words and the longest input."""
    settings = {"tokenizer_class": _CLASS, "update_embeddings": False, "max_seq_length": length}
    write_json(folder / SETTINGS, settings)
    words.save_pretrained(folder)
    write_weights(folder, {_KEY: table.embedding.weight[:-1]})


def write_word_weights(weights_V: torch.Tensor, words: WhitespaceWords, folder: Path) -> None:
    """Write the weights of a table's words as a module of their own."""
    known = dict(zip(words.words, weights_V.tolist(), strict=False))
    # Every row needs a name: some tables have more rows than words.
    names = [*words.words, *(f"[row {row}]" for row in range(len(words.words), words.pad_token_id))]
    write_json(folder / "config.json", {"vocab": names, "word_weights": known, "unknown_word_weight": 1})
    write_weights(folder, {WORD_WEIGHTS: weights_V[:-1, None]})
