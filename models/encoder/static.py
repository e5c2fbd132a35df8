"""A table of token or word vectors in place of a transformer: a token's vector is the same in every sentence.

Folder, as sentence-transformers' StaticEmbedding writes and reads it:

model.safetensors               `embedding.weight`; or, from model2vec, `embeddings`, with a row's number (`mapping`)
                                and a factor (`weights`) for each token where there are such
tokenizer.json                  its truncation, if any, is the longest input; of a table of words it says how sentences
                                are split, and has a token for sentences without any known word

How a sentence is split into words decides the figures of word vectors, such as GloVe's, more than the vectors do. So it
is a setting in the tokenizer itself, in the artifact's key and in the signature of every figure. Words that the table
lacks do not count; a sentence of such words alone is the zero vector, whose cosine with any other is 0 (SentEval's
rule). The tokenizer must drop unknown words, which a word-level model cannot: it is a byte-pair model without merges
over words that each begin with a mark, so that no word is found by its letters.

Shapes: V tokens of the vocabulary, B sentences, T tokens, D width.
"""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import tokenizers
import torch
from tokenizers import Regex, models, normalizers, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput

from models.encoder.config import LONGEST, NOTHING, WordsConfig, read_json
from models.encoder.transformer import WEIGHTS, check_ids, read_weights
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.encoder.config import EncoderConfig

KEY_MODEL2VEC: Final = "embeddings"
MARK: Final = "▁"
TOKENIZER: Final = "tokenizer.json"
KEY: Final = "embedding.weight"
_NO_LETTER: Final = "\uffff"  # before every letter but the first, so that none is found
_HEADER_BYTES: Final = 256
_TREEBANK: Final = (
    r"n['’]t(?!\w)|['’](?:s|m|d|re|ve|ll)(?!\w)|\w+?(?=n['’]t(?!\w))|\d+(?:[.,:]\d+)+|(?:\w\.){2,}|\w+(?:-\w+)*"
)
# (split, marks) → what a word is.
_PATTERNS: Final[Mapping[tuple[str, bool], str]] = {
    ("treebank", True): rf"(?i){_TREEBANK}|[^\w\s]",
    ("treebank", False): rf"(?i){_TREEBANK}",
    ("punctuation", True): r"\w+|[^\w\s]",
    ("punctuation", False): r"\w+",
    ("whitespace", True): r"\S+",
    ("whitespace", False): r"\w(?:\S*\w)?",
}


Tokenizer: TypeAlias = "PreTrainedTokenizerBase | WhitespaceTokenizer"


@dataclass
class TableConfig:
    """The fields of a transformer's configuration that a table has."""

    hidden_size: int
    vocab_size: int
    model_type: str = "static-table"


class StaticTable(nn.Module):
    """Token ids to token vectors by look-up, a backbone of encoders.

    Attributes:
        config: Width and number of rows.
        weights: A factor for each row, which also becomes the last dimension of its vector; None for none.
    """

    weights: torch.Tensor | None

    def __init__(self, weight_VD: torch.Tensor, nothing: int | None = None) -> None:
        """Make a table, whose row `nothing`, if any, never changes."""
        super().__init__()
        size, width = weight_VD.shape
        self.config = TableConfig(hidden_size=width, vocab_size=size)
        self.embedding = nn.Embedding(size, width, padding_idx=nothing, _weight=weight_VD)
        self.register_buffer("weights", None)

    def weigh(self, weights_V: torch.Tensor) -> None:
        """Multiply each row by a weight, which becomes the last dimension of its token vectors."""
        self.weights = weights_V
        self.config.hidden_size += 1

    def forward(self, input_ids: torch.Tensor, **_: object) -> BaseModelOutput:
        """Token vectors (B, T, D) of ids (B, T) as the last layer of a transformer that has no other."""
        x_BTD = self.embedding(input_ids)
        if self.weights is not None:
            weight_BT1 = self.weights[input_ids].unsqueeze(-1)
            x_BTD = torch.cat([x_BTD * weight_BT1, weight_BT1], dim=-1)
        return BaseModelOutput(last_hidden_state=x_BTD)


class WhitespaceTokenizer:
    """A tokenizer of a word table, with the part of the interface of transformers that encoders use.

    Words are split at blanks. A word that the table lacks is tried without the punctuation around it, then in lower
    case (sentence-transformers' WhitespaceTokenizer).

    Attributes:
        words: In the order of the table's rows; their number is the row of `pad_token`.
        stop: Words that are dropped.
        lower: Whether a text is lower-cased first.
    """

    pad_token = NOTHING
    is_fast = False
    all_special_ids: tuple[int, ...] = ()
    cls_token_id = bos_token_id = sep_token_id = eos_token_id = mask_token_id = unk_token_id = None

    def __init__(self, words: Sequence[str], stop: Iterable[str], rows: int, *, lower: bool) -> None:
        self.words, self.stop, self.lower = tuple(words), frozenset(stop), lower
        self.pad_token_id = rows
        self._rows = {word: row for row, word in enumerate(self.words)}

    def __call__(self, texts: str | Sequence[str], *, max_length: int | None = None, **_: object) -> dict[str, Any]:
        """`input_ids` of a text, or of each text.

        Raises:
            TypeError, UnicodeError: A text is no string, or not valid Unicode.
        """
        if isinstance(texts, str):
            return {"input_ids": self._ids(texts)[:max_length]}
        return {"input_ids": [self._ids(text)[:max_length] for text in texts]}

    def __len__(self) -> int:
        return self.pad_token_id + 1

    def get_vocab(self) -> dict[str, int]:
        """Word → row."""
        return {**self._rows, NOTHING: self.pad_token_id}

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


def static_tokenizer(core: tokenizers.Tokenizer) -> PreTrainedTokenizerFast:
    """A table's tokenizer: its tokenisation of a text without special tokens, which a mean would count as words."""
    core = tokenizers.Tokenizer.from_str(core.to_str())
    core.post_processor = None  # adds special tokens
    core.no_padding()
    core.no_truncation()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core)  # type: ignore[no-untyped-call]
    # Any token pads, for padding is left out of the mean; set afterwards, it is not looked for in texts.
    tokenizer.pad_token = core.id_to_token(0) if core.token_to_id(NOTHING) is None else NOTHING
    return tokenizer


def static_settings(folder: Path) -> tuple[int, WordsConfig | None]:
    """The longest input of a saved table in tokens, and how it cuts sentences if it is one of words."""
    settings = read_json(folder / TOKENIZER)
    truncation = settings.get("truncation")
    return int(truncation["max_length"]) if truncation else LONGEST, read_words(settings)


def refuse_dropout(folder: Path, config: EncoderConfig) -> None:
    """Refuse a dropout rate, for a table has no dropout.

    Raises:
        EncoderError: The configuration asks for some.
    """
    if config.dropout is not None:
        raise EncoderError(
            f"{folder}: a static table has no dropout, encoder.dropout asks for {config.dropout}; leave it unset"
        )


def load_static(folder: Path, config: EncoderConfig) -> tuple[StaticTable, PreTrainedTokenizerBase]:
    """Load a table in fp32 and its tokenizer.

    Raises:
        EncoderError: A file is missing or damaged, the vocabulary is larger than the table, or dropout is asked for.
    """
    refuse_dropout(folder, config)
    read_json(folder / TOKENIZER)  # says what is wrong with the file, which the tokenizer's reader does not
    tokenizer = static_tokenizer(tokenizers.Tokenizer.from_file(str(folder / TOKENIZER)))
    weight_VD = _table(folder)
    check_ids(folder, tokenizer, len(weight_VD))
    return StaticTable(weight_VD, tokenizer.get_vocab().get(NOTHING)), tokenizer


def save_static_tokenizer(tokenizer: PreTrainedTokenizerBase, max_length: int, folder: Path) -> None:
    """Write the tokenizer with the longest input, which has no other place in such a folder."""
    core = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    if max_length < LONGEST:
        core.enable_truncation(max_length)
    core.save(str(folder / TOKENIZER))


def write_words(
    folder: Path, blocks: Iterable[tuple[list[str], NDArray[np.float32]]], config: WordsConfig
) -> dict[str, int]:
    """Write a table and its tokenizer as a folder that `SentenceEncoder.load` and sentence-transformers read.

    The table passes through, so memory holds the words alone.

    Args:
        folder: made if needed.
        blocks: words and their vectors; of a word that comes twice the first counts.
        config: how sentences are cut.

    Returns:
        Numbers of words, of repeated ones, and of D.

    Raises:
        EncoderError: There is no word at all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary: dict[str, int] = {}
    repeated, width = 0, 0
    with (folder / WEIGHTS).open("wb") as file:
        file.write(b" " * _HEADER_BYTES)
        for names, table_ND in blocks:
            new = [place for place, name in enumerate(names) if _added(vocabulary, MARK + name)]
            repeated, width = repeated + len(names) - len(new), table_ND.shape[1]
            file.write(np.ascontiguousarray(table_ND[new], dtype="<f4").tobytes())
        if not vocabulary:
            raise EncoderError(f"{folder}: word vectors without a word, expected some; look at the file of vectors")
        file.write(np.zeros(width, dtype="<f4").tobytes())
        file.seek(0)
        file.write(_header(len(vocabulary) + 1, width))
    _write_tokenizer(folder, vocabulary, config)
    _write_modules(folder)
    return {"words": len(vocabulary) - 1, "repeated": repeated, "dimensions": width}


def read_words(tokenizer: Mapping[str, object]) -> WordsConfig | None:
    """How a tokenizer's file cuts sentences into words; None if it is not one of `write_words`."""
    steps = tokenizer.get("pre_tokenizer")
    first = steps["pretokenizers"][0] if isinstance(steps, dict) and steps.get("type") == "Sequence" else {}
    cut = first.get("pattern", {}).get("Regex") if isinstance(first, dict) else None
    read = next((setting for setting, pattern in _PATTERNS.items() if pattern == cut), None)
    if read is None:
        return None
    case = "lower" if tokenizer.get("normalizer") else "kept"
    return WordsConfig.model_validate({"split": read[0], "marks": read[1], "case": case})


def word_tokenizer(vocabulary: dict[str, int], config: WordsConfig) -> tokenizers.Tokenizer:
    """Sentences to the known words in them.

    Args:
        vocabulary: word behind `MARK` → row.
        config: how sentences are cut; `case` must be decided.
    """
    core = tokenizers.Tokenizer(
        models.BPE(vocab=vocabulary, merges=[], ignore_merges=True, continuing_subword_prefix=_NO_LETTER)
    )
    if config.case == "lower":
        core.normalizer = normalizers.Lowercase()
    pattern = Regex(_PATTERNS[config.split, config.marks])
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "removed", invert=True),
            pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=False),
        ]
    )
    return core


def _added(vocabulary: dict[str, int], name: str) -> bool:
    """Whether a word was new; then it is in the vocabulary now."""
    before = len(vocabulary)
    return vocabulary.setdefault(name, before) == before


def _write_tokenizer(folder: Path, vocabulary: dict[str, int], config: WordsConfig) -> None:
    if config.case == "file":
        capitals = any(name != name.lower() for name in vocabulary)
        config = config.model_copy(update={"case": "kept" if capitals else "lower"})
    vocabulary[NOTHING] = len(vocabulary)
    word_tokenizer(vocabulary, config).save(str(folder / TOKENIZER), pretty=False)


def _write_modules(folder: Path) -> None:
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    (folder / "modules.json").write_text(json.dumps([module], indent=2) + "\n", encoding="utf-8")


def _header(rows: int, width: int) -> bytes:
    """The head of a safetensors file with one table, blank to its end."""
    entry = {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}
    text = json.dumps({KEY: entry}).encode().ljust(_HEADER_BYTES - 8)
    return len(text).to_bytes(8, "little") + text


def _table(folder: Path) -> torch.Tensor:
    weights = read_weights(folder)
    if KEY in weights:
        return weights[KEY].float()
    if KEY_MODEL2VEC not in weights:
        raise EncoderError(
            f"{folder}: holds {', '.join(sorted(weights))}, expected {KEY} or {KEY_MODEL2VEC}; give the folder of a "
            "static table"
        )
    table_RD = weights[KEY_MODEL2VEC].float()
    weight_VD = table_RD[weights["mapping"].long()] if "mapping" in weights else table_RD
    return weight_VD * weights["weights"].float()[:, None] if "weights" in weights else weight_VD
