"""Check that a tokenizer belongs to the weights next to it, and that it reads ordinary words.

transformers loads a folder whose tokenizer files are missing or damaged without an error. The tokenizer then has no
words, or no merges, and the vectors are meaningless.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

# Frequent words and letters of many scripts. A tokenizer of one language reads some of them.
ORDINARY: Final = (
    *("the", "a", "of", "and", "A", "M", "1", "de", "der", "que", "и", "не", "και", "της", "של", "את", "في", "من"),
    *("में", "के", "ও", "এর", "และ", "ที่", "的", "是", "不", "の", "に", "を", "이", "는", "và", "và là", "ve", "ja"),
)
UNUSED: Final = 0.1  # of the rows, at most; padding of tables to round sizes leaves up to 3 % of published ones unused
_FEW: Final = 64  # unused rows that any table may have
_SAMPLED: Final = 2000  # tokens of the vocabulary to look at
_TRIED: Final = 64  # of these, words to tokenise
_MARKS: Final = "Ġ▁#@</w>_"  # tokenizers' marks of the beginning or continuation of a word


def check_tokenizer(folder: Path, tokenizer: PreTrainedTokenizerBase, rows: int) -> None:
    """Check a tokenizer against the number of rows of the embedding table.

    Raises:
        EncoderError: An id has no row; the vocabulary is much smaller than the table; every ordinary word is unknown;
            or no token of several letters is ever produced, as without merges.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    last = max(vocabulary.values(), default=-1)
    if last >= rows:
        raise EncoderError(
            f"{folder}: the tokenizer has ids up to {last}, but the embedding table has only {rows} rows. Use a folder "
            "whose tokenizer matches its weights, or enlarge the table (resize_token_embeddings)."
        )
    added = tokenizer.added_tokens_decoder.items()
    special = {*tokenizer.all_special_ids, *(number for number, token in added if token.special)}
    if not _produces(tokenizer, ORDINARY, special, letters=1):
        raise EncoderError(
            f"{folder}: the tokenizer knows no ordinary word: its vocabulary has {len(vocabulary)} tokens, of which "
            f"{len(special)} are special. {_remedy(folder, tokenizer)}"
        )
    if rows - (last + 1) > max(UNUSED * rows, _FEW):
        raise EncoderError(
            f"{folder}: the tokenizer has {len(vocabulary)} tokens, but the embedding table has {rows} rows. "
            f"{_remedy(folder, tokenizer)}"
        )
    words = _words(vocabulary, special)
    if words and not _produces(tokenizer, words, special, letters=2):
        raise EncoderError(
            f"{folder}: the tokenizer splits every word into letters, though its vocabulary has longer tokens (such as "
            f"{words[0]!r}). Its merges are missing. {_remedy(folder, tokenizer)}"
        )


def _produces(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], special: Set[int], *, letters: int) -> bool:
    """Return whether some text gives a token of at least `letters` letters that is not special."""
    found = tokenizer(
        [*texts, *(f" {text}" for text in texts)],
        add_special_tokens=False,
        padding=False,
        truncation=False,
        return_attention_mask=False,
        verbose=False,
    )
    ids = sorted({number for row in found["input_ids"] for number in row} - special)
    return any(len(str(token).strip(_MARKS)) >= letters for token in tokenizer.convert_ids_to_tokens(ids))


def _words(vocabulary: dict[str, int], special: Set[int]) -> list[str]:
    """Return some tokens of at least two letters, without marks; ASCII ones if there are any."""
    step = max(1, len(vocabulary) // _SAMPLED)
    sampled = list(_plain(itertools.islice(vocabulary.items(), 0, None, step), special))
    ascii_only = [word for word in sampled if word.isascii()]
    return (ascii_only or sampled)[:_TRIED]


def _plain(tokens: Iterable[tuple[str, int]], special: Set[int]) -> Iterable[str]:
    for token, number in tokens:
        bare = token.strip(_MARKS)
        if number not in special and len(bare) > 1 and bare.isalpha():
            yield bare


def _remedy(folder: Path, tokenizer: PreTrainedTokenizerBase) -> str:
    names = sorted({*type(tokenizer).vocab_files_names.values()} or {"tokenizer.json"})
    missing = [name for name in names if not (folder / name).is_file()]
    files = f"missing: {', '.join(missing)}" if missing else f"found: {', '.join(names)}"
    return f"Copy the tokenizer's files of this model into the folder ({files})."
