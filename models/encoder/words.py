"""A table of word vectors, such as GloVe's, as a static encoder: the mean over the known words of a sentence.

How a sentence is cut decides the figures of such a baseline more than the vectors do, so it is a setting that stands in
the tokenizer itself, in the artifact's key and in the signature of every figure. Words that the table lacks count
nothing; a sentence of such words alone is the zero vector, whose cosine with any other is 0 (SentEval's rule).

sentence-transformers' StaticEmbedding reads the folder and gives the same vectors. Its tokenizer must drop unknown
words, which a word-level model cannot: this one is a byte-pair model without merges over words that each begin with a
mark, so that no word is found by its letters.

Shapes: V words, D width.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from models.encoder.config import WordsConfig
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

NOTHING: Final = "[nothing]"
"""Token of the zero vector, the table's last; no text holds it, for it lacks the mark."""
MARK: Final = "▁"
WEIGHTS: Final = "model.safetensors"
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


def write_words(
    folder: Path, blocks: Iterable[tuple[list[str], NDArray[np.float32]]], config: WordsConfig
) -> dict[str, int]:
    """Write a table and its tokenizer as a folder that `load_encoder` and sentence-transformers read.

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


def word_tokenizer(vocabulary: dict[str, int], config: WordsConfig) -> Tokenizer:
    """Sentences to the known words in them.

    Args:
        vocabulary: word behind `MARK` → row.
        config: how sentences are cut; `case` must be decided.
    """
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True, continuing_subword_prefix=_NO_LETTER))
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
