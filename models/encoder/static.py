"""Static embeddings: a table of token or word vectors as backbone, the same vector for a token in every sentence.

Folder, as sentence-transformers' StaticEmbedding writes and reads it:

model.safetensors               `embedding.weight`; or, from model2vec, `embeddings`, optionally with a row number
                                (`mapping`) and a factor (`weights`) for each token
tokenizer.json                  its truncation, if any, is the maximal length; for a word table it also has the rule
                                for splitting sentences and a token for sentences without any known word

Scores of word vectors such as GloVe's depend more on how sentences are split into words than on the vectors. So the
rule is part of the tokenizer, of the artifact's key and of the signature of every score. Words that the table lacks
are dropped. A sentence without any known word is the zero vector, whose cosine with any other is 0 (SentEval's rule).
The same is true of other tables, as in sentence-transformers and model2vec, for a text without any token.
A word-level tokenizer model cannot drop unknown words, so the model is byte-pair without merges. Every word of the
vocabulary begins with a mark, so that no word is matched letter by letter.

Shapes: V tokens of the vocabulary, B sentences, T tokens, D width.
"""

from __future__ import annotations

import json
import string
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import tokenizers
import torch
from tokenizers import Regex, models, normalizers, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput

from bsl.models.encoder.config import LONGEST, ZERO_TOKEN, WordsConfig, read_json
from bsl.models.encoder.tokenizer_check import check_tokenizer
from bsl.models.encoder.transformer import refuse_dropout
from bsl.models.encoder.weights import read_weights, refuse_pointers, write_json
from bsl.models.errors import EncoderError
from bsl.storage.filesystem.model_folder import WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from bsl.models.encoder.config import EncoderConfig

KEY_MODEL2VEC: Final = "embeddings"
MARK: Final = "▁"
TOKENIZER: Final = "tokenizer.json"
KEY: Final = "embedding.weight"
_NO_LETTER: Final = "\uffff"  # prefix of every letter but the first, so that no letter matches
_HEADER_BYTES: Final = 256
_TREEBANK: Final = (
    r"n['’]t(?!\w)|['’](?:s|m|d|re|ve|ll)(?!\w)|\w+?(?=n['’]t(?!\w))|\d+(?:[.,:]\d+)+|(?:\w\.){2,}|\w+(?:-\w+)*"
)
# (split, marks) → pattern of a word.
_PATTERNS: Final[Mapping[tuple[str, bool], str]] = {
    ("treebank", True): rf"(?i){_TREEBANK}|[^\w\s]",
    ("treebank", False): rf"(?i){_TREEBANK}",
    ("punctuation", True): r"\w+|[^\w\s]",
    ("punctuation", False): r"\w+",
    ("whitespace", True): r"\S+",
    ("whitespace", False): r"\w(?:\S*\w)?",
}


Tokenizer: TypeAlias = "PreTrainedTokenizerBase | WhitespaceTokenizer"


class StaticTable(nn.Module):
    """Encoder backbone that looks up token vectors in a table.

    Attributes:
        config: The field of a transformer's configuration that encoders read, the width of the vectors.
        weights: Factor of each row, also appended to its vector as last dimension; None for no weights.
    """

    weights: torch.Tensor | None

    def __init__(self, weight_VD: torch.Tensor, untrained_row: int | None = None) -> None:
        """Make a table; `untrained_row` is never trained, if there is one."""
        super().__init__()
        size, width = weight_VD.shape
        self.config = SimpleNamespace(hidden_size=width)
        self.embedding = nn.Embedding(size, width, padding_idx=untrained_row, _weight=weight_VD)
        self.register_buffer("weights", None)

    def set_row_weights(self, weights_V: torch.Tensor) -> None:
        """Multiply each row by a weight and append the weight to its token vectors as last dimension."""
        self.weights = weights_V
        self.config.hidden_size += 1

    def forward(self, input_ids: torch.Tensor, **_: object) -> BaseModelOutput:
        """Return token vectors (B, T, D) of ids (B, T) as `last_hidden_state`."""
        x_BTD = self.embedding(input_ids)
        if self.weights is not None:
            weight_BT1 = self.weights[input_ids].unsqueeze(-1)
            x_BTD = torch.cat([x_BTD * weight_BT1, weight_BT1], dim=-1)
        return BaseModelOutput(last_hidden_state=x_BTD)


class WhitespaceTokenizer:
    """Whitespace tokenizer of a word table, with the part of transformers' tokenizer interface that encoders use.

    Words are split at whitespace. A word that the table lacks is looked up without surrounding punctuation, then also
    in lower case (sentence-transformers' WhitespaceTokenizer).

    Attributes:
        words: Words in the order of the table's rows.
        pad_token_id: Row of `pad_token`, the number of rows of the saved table.
        stop: Words to drop.
        lower: Whether a text is lower-cased first.
    """

    pad_token = ZERO_TOKEN
    is_fast = False
    all_special_ids: tuple[int, ...] = ()
    cls_token_id = bos_token_id = sep_token_id = eos_token_id = mask_token_id = unk_token_id = None

    def __init__(self, words: Sequence[str], stop: Iterable[str], rows: int, *, lower: bool) -> None:
        self.words, self.stop, self.lower = tuple(words), frozenset(stop), lower
        self.pad_token_id = rows
        self._rows = {word: row for row, word in enumerate(self.words)}

    def __call__(self, texts: str | Sequence[str], *, max_length: int | None = None, **_: object) -> dict[str, Any]:
        """Return `input_ids` of a text, or of each text.

        Raises:
            TypeError, UnicodeError: A text is not a string, or not valid Unicode.
        """
        if isinstance(texts, str):
            return {"input_ids": self._ids(texts)[:max_length]}
        return {"input_ids": [self._ids(text)[:max_length] for text in texts]}

    def __len__(self) -> int:
        return self.pad_token_id + 1

    def get_vocab(self) -> dict[str, int]:
        """Return the mapping from word to row."""
        return {**self._rows, ZERO_TOKEN: self.pad_token_id}

    def _ids(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is not a string")
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


class TableTokenizer(PreTrainedTokenizerFast):
    """Tokenizer of a table, without special tokens.

    Attributes:
        accepts_no_token: A text may have no token, because its mean is then the zero vector.
    """

    accepts_no_token = True


def static_tokenizer(core: tokenizers.Tokenizer) -> TableTokenizer:
    """Return a table's tokenizer without special tokens, which the mean would count as words."""
    core = tokenizers.Tokenizer.from_str(core.to_str())
    side = str((core.truncation or {}).get("direction", "right"))
    core.post_processor = None  # adds special tokens
    core.no_padding()
    core.no_truncation()
    tokenizer = TableTokenizer(tokenizer_object=core, truncation_side=side)  # type: ignore[no-untyped-call]
    # Any token can pad, since the mean ignores padding. Set after construction, it is not matched in texts.
    tokenizer.pad_token = core.id_to_token(0) if core.token_to_id(ZERO_TOKEN) is None else ZERO_TOKEN
    return tokenizer


def static_settings(folder: Path) -> tuple[int, WordsConfig | None]:
    """Return the maximal length of a saved table in tokens, and the word splitting of a word table, else None."""
    settings = read_json(folder / TOKENIZER)
    truncation = settings.get("truncation")
    return int(truncation["max_length"]) if truncation else LONGEST, read_words(settings)


def load_static(folder: Path, config: EncoderConfig) -> tuple[StaticTable, PreTrainedTokenizerBase]:
    """Load a table in fp32 and its tokenizer.

    Raises:
        EncoderError: A file is missing or damaged, the vocabulary is larger than the table, or dropout is configured.
    """
    refuse_dropout(folder, config, "a static table")
    refuse_pointers([folder / TOKENIZER])
    read_json(folder / TOKENIZER)  # for its error message, which is clearer than that of tokenizers
    tokenizer = static_tokenizer(tokenizers.Tokenizer.from_file(str(folder / TOKENIZER)))
    weight_VD = _table(folder)
    untrained_row = tokenizer.get_vocab().get(ZERO_TOKEN)
    if untrained_row is None:
        check_tokenizer(folder, tokenizer, len(weight_VD))
    elif untrained_row >= len(weight_VD):
        raise EncoderError(
            f"{folder}: {untrained_row} words and a table of {len(weight_VD)} rows, expected a row for each word and "
            "one for texts without words. Check that both files are of the same model."
        )
    return StaticTable(weight_VD, untrained_row), tokenizer


def save_static_tokenizer(tokenizer: PreTrainedTokenizerBase, max_length: int, folder: Path) -> None:
    """Write the tokenizer with the maximal length as its truncation, since the folder has no other file for it."""
    core = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    if max_length < LONGEST:
        core.enable_truncation(max_length, direction=tokenizer.truncation_side)
    core.save(str(folder / TOKENIZER))


def write_words(
    folder: Path, blocks: Iterable[tuple[list[str], NDArray[np.float32]]], config: WordsConfig
) -> dict[str, int]:
    """Write a table and its tokenizer as a folder that `SentenceEncoder.load` and sentence-transformers read.

    The table is streamed, so only the words need memory.

    Args:
        folder: Created if needed.
        blocks: Words and their vectors; the first occurrence of a repeated word is used.
        config: How sentences are split into words.

    Returns:
        Numbers of words, of repeated words, and of dimensions.

    Raises:
        EncoderError: There is no word.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary: dict[str, int] = {}
    repeated, width = 0, 0
    with (folder / WEIGHTS).open("wb") as file:
        file.write(b" " * _HEADER_BYTES)
        for names, table_ND in blocks:
            new = []
            for row, name in enumerate(names):
                if MARK + name not in vocabulary:
                    vocabulary[MARK + name] = len(vocabulary)
                    new.append(row)
            repeated, width = repeated + len(names) - len(new), table_ND.shape[1]
            file.write(np.ascontiguousarray(table_ND[new], dtype="<f4").tobytes())
        if not vocabulary:
            raise EncoderError(f"{folder}: the file of word vectors contains no word. Check the file.")
        file.write(np.zeros(width, dtype="<f4").tobytes())
        file.seek(0)
        file.write(_header(len(vocabulary) + 1, width))
    if config.case == "file":
        capitals = any(name != name.lower() for name in vocabulary)
        config = config.model_copy(update={"case": "kept" if capitals else "lower"})
    vocabulary[ZERO_TOKEN] = len(vocabulary)
    word_tokenizer(vocabulary, config).save(str(folder / TOKENIZER), pretty=False)
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    write_json(folder / "modules.json", [module])
    return {"words": len(vocabulary) - 1, "repeated": repeated, "dimensions": width}


def read_words(tokenizer: Mapping[str, object]) -> WordsConfig | None:
    """Return how a tokenizer's file splits sentences into words; None if `write_words` did not write it."""
    steps = tokenizer.get("pre_tokenizer")
    first = steps["pretokenizers"][0] if isinstance(steps, dict) and steps.get("type") == "Sequence" else {}
    regex = first.get("pattern", {}).get("Regex") if isinstance(first, dict) else None
    setting = next((setting for setting, pattern in _PATTERNS.items() if pattern == regex), None)
    if setting is None:
        return None
    case = "lower" if tokenizer.get("normalizer") else "kept"
    return WordsConfig.model_validate({"split": setting[0], "marks": setting[1], "case": case})


def word_tokenizer(vocabulary: dict[str, int], config: WordsConfig) -> tokenizers.Tokenizer:
    """Return a tokenizer that maps sentences to their known words.

    Args:
        vocabulary: `MARK` + word → row.
        config: How sentences are split into words; `case` must not be `file`.
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


def _header(rows: int, width: int) -> bytes:
    """Return the header of a safetensors file with one table, padded with blanks to its fixed length."""
    entry = {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}
    text = json.dumps({KEY: entry}).encode().ljust(_HEADER_BYTES - 8)
    return len(text).to_bytes(8, "little") + text


def _table(folder: Path) -> torch.Tensor:
    weights = read_weights(folder)
    if KEY in weights:
        return weights[KEY].float()
    if KEY_MODEL2VEC not in weights:
        raise EncoderError(
            f"{folder}: contains the tensors {', '.join(sorted(weights))}, expected {KEY} or {KEY_MODEL2VEC}. Give the "
            "folder of a static table."
        )
    table_RD = weights[KEY_MODEL2VEC].float()
    weight_VD = table_RD[weights["mapping"].long()] if "mapping" in weights else table_RD
    return weight_VD * weights["weights"].float()[:, None] if "weights" in weights else weight_VD
