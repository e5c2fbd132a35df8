"""Texts as token ids in one flat array, with the place where each sentence starts.

Tokenising once and slicing is two orders of magnitude cheaper per batch than tokenising in every step, and rows of
any lengths can be padded together when they are needed.
"""

from __future__ import annotations

import contextlib
import string
import threading
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch

from models.errors import EncoderError, NoEmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

Tokenizer: TypeAlias = "PreTrainedTokenizerBase | WhitespaceTokenizer"
NOTHING: Final = "[nothing]"
"""Token of a word table's zero vector, its last; no text contains it."""
CHUNK = 10_000  # texts per tokenizer call: enough to keep its threads busy, few enough to bound memory

_locking = threading.Lock()
_locks: WeakKeyDictionary[Tokenizer, threading.Lock] = WeakKeyDictionary()


@dataclass(frozen=True)
class Tokens:
    """Token ids of n sentences.

    Attributes:
        ids: (total,) int32, all sentences one after the other, special tokens included.
        offsets: (n + 1,) int64; sentence i is `ids[offsets[i]:offsets[i + 1]]`.
        pad_id: The id that fills shorter rows of a batch.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    pad_id: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sentence, (n,)."""
        return np.diff(self.offsets)

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of some sentences, (len(rows),), without looking at the others."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def take(self, rows: NDArray[np.int64]) -> Tokens:
        """Some sentences as tokens of their own, in the order of `rows`."""
        parts = [self.ids[self.offsets[row] : self.offsets[row + 1]] for row in rows]
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.lengths_of(rows))])
        return Tokens(np.concatenate(parts) if parts else self.ids[:0], offsets, self.pad_id)

    def padded(self, rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows side by side: ids (B, T) int64 padded on the right, and the mask (B, T), 1 for real tokens."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        place_BT = starts[:, None] + np.arange(int((ends - starts).max()))
        real_BT = place_BT < ends[:, None]
        ids_BT = np.where(real_BT, self.ids[np.minimum(place_BT, len(self.ids) - 1)], self.pad_id)
        return torch.from_numpy(ids_BT.astype(np.int64)), torch.from_numpy(real_BT.astype(np.int64))


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


def check_ids(folder: Path, tokenizer: Tokenizer, rows: int) -> None:
    """Refuse a tokenizer with ids beyond the embedding table: an encoder would fail at the first such token.

    Raises:
        EncoderError: An id has no row.
    """
    if (last := max(tokenizer.get_vocab().values(), default=-1)) >= rows:
        raise EncoderError(
            f"{folder}: a table of {rows} rows and a tokenizer with ids up to {last}, expected a row for each; give "
            "the folder whose tokenizer belongs to its weights, or enlarge the table (resize_token_embeddings)"
        )


def surrounding_ids(tokenizer: Tokenizer, prompt: str) -> tuple[list[int], list[int]]:
    """Ids before a text (special tokens and the prompt's), and ids of the special tokens after it."""
    alone, followed = (
        list(tokenizer(text, return_attention_mask=False)["input_ids"]) for text in (prompt, f"{prompt}the")
    )
    special = {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}
    after = list(takewhile(special.__contains__, reversed(followed)))[::-1]
    return alone[: len(alone) - len(after)], after


def tokenise(tokenizer: Tokenizer, texts: Sequence[str], max_length: int, prompt: str = "") -> Tokens:
    """Tokenise texts with their special tokens, cut at `max_length` tokens.

    Args:
        tokenizer: The encoder's own.
        texts: Any number of texts.
        max_length: Tokens of a text that are kept, special tokens included.
        prompt: Put before every text.

    Raises:
        EncoderError: The tokenizer has no padding token.
        NoEmbeddingError: A text gives no token at all, or is none: null, or with half of a character.
    """
    if tokenizer.pad_token_id is None:
        raise EncoderError(
            f"the tokenizer {type(tokenizer).__name__} has no padding token; "
            "set one (tokenizer.pad_token) and save it again"
        )
    # A table of words has a token for a sentence of which it knows none, others have nothing to say.
    instead = [tokenizer.pad_token_id] if tokenizer.pad_token == NOTHING else []
    ids: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    with _left_as_found(tokenizer):
        for number, chunk in enumerate(_chunks(texts, CHUNK)):
            try:
                found = _ids(tokenizer, [prompt + text for text in chunk] if prompt else chunk, max_length)
            except (TypeError, ValueError):
                _refuse_first_bad(chunk, number * CHUNK)
                raise
            rows = [row or instead for row in found]
            ids.extend(np.asarray(row, dtype=np.int32) for row in rows)
            lengths.extend(map(len, rows))
    if 0 in lengths:
        raise NoEmbeddingError(
            lengths.index(0), "gives no token; drop empty texts, or use a tokenizer with special tokens"
        )
    flat = np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
    return Tokens(flat, offsets, int(tokenizer.pad_token_id))


def _ids(tokenizer: Tokenizer, texts: list[str], max_length: int) -> list[list[int]]:
    # No padding here: it would cost memory, and the tokenizer is called by others with padding too.
    call = tokenizer(
        texts, truncation=True, max_length=max_length, padding=False, return_attention_mask=False, verbose=False
    )
    return list(call["input_ids"])


def _refuse_first_bad(texts: Sequence[object], first_row: int) -> None:
    """Name the first that is no text; tokenizers say of a whole chunk that its type is wrong."""
    for row, text in enumerate(texts, start=first_row):
        if not isinstance(text, str):
            raise NoEmbeddingError(row, f"is {text!r}, expected a text; leave out rows without one")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise NoEmbeddingError(
                row,
                f"has half of a character at place {error.start}, expected whole ones; read the file as UTF-8 again",
            ) from error


def budget_batches(lengths: NDArray[np.int64], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Cut sentences into batches of like length whose padded size stays within a token budget.

    Args:
        lengths: (n,) tokens per sentence.
        batch_tokens: Bound on rows x longest row; a single longer sentence forms its own batch.

    Yields:
        Row numbers, longest batch first (so that memory is claimed once); equal lengths keep their order.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = max(1, batch_tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + rows]
        start += rows


@contextlib.contextmanager
def _left_as_found(tokenizer: Tokenizer) -> Iterator[None]:
    """Restore what a call leaves in a tokenizer: saved later, it must not tell whether it was used before.

    One thread at a time, for what a call sets another's would be cut by.
    """
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    with _lock_of(tokenizer):
        before = None if backend is None else (backend.truncation, backend.padding)
        try:
            yield
        finally:
            if before is not None:
                _set(before[0], backend.enable_truncation, backend.no_truncation)
                _set(before[1], backend.enable_padding, backend.no_padding)


def _lock_of(tokenizer: Tokenizer) -> threading.Lock:
    """A tokenizer's own lock, which is no part of it: it is copied and saved."""
    with _locking:
        return _locks.setdefault(tokenizer, threading.Lock())


def _set(options: dict[str, Any] | None, enable: Callable[..., None], disable: Callable[[], None]) -> None:
    if options is None:
        disable()
    else:
        enable(**options)


def _chunks(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])
