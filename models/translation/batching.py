"""Translate in token-budget batches of sentences of similar length, as piece numbers of one vocabulary.

Sorted by length and cut at 1,024 padded tokens, NLI text wastes 1.5 times its useful tokens. In input order at 32
sentences per batch it wastes 2.9 times (PERF A).

Engines only map piece numbers to piece numbers. So all backends use the same vocabulary and batches, the same cap for
each sentence, and leave the same sentences untranslated.

`MarianTokenizer` loops over sentences in Python. Its parts (two SentencePiece models and the vocabulary) do the same
for a whole list at once; a test compares both. Deviation: text that looks like a special token (`</s>`, `>>fra<<`) is
plain text here. The target language comes from the configuration, so a sentence of the corpus cannot switch it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from sacremoses import MosesPunctNormalizer
from transformers import MarianTokenizer

from bsl.models.errors import TranslationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bsl.models.runtime.progress import OnProgress
    from bsl.models.translation.config import TranslatorConfig


Lost: TypeAlias = Literal["", "source", "translation"]


@dataclass(frozen=True)
class Translation:
    """One sentence in the target language."""

    text: str
    """The translation; the source itself if it has nothing to translate."""

    n_tokens: int
    """Target pieces computed, without end mark; 0 if the source was not translated."""

    score: float | None
    """Mean natural log-probability per piece, at most 0; None if the search does not give it."""

    lost: Lost = ""
    """What was cut at its limit: the end of a long source, which is not translated, or else of the translation."""


Decoded: TypeAlias = list[tuple[list[int], float | None]]
"""For each source of a batch, the target pieces without end mark and padding, and their mean natural log-probability
with the end mark, at most 0; None if the search does not give it."""

logger = logging.getLogger(__name__)

_FILES = ("source.spm", "target.spm", "vocab.json")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's mark for a space
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "alloc_failed")  # the last is cuBLAS's


def run_in_batches(
    lengths: Sequence[int], budget: int, submit: Callable[[int, int], Callable[[], None]], ahead: int = 1
) -> None:
    """Submit and collect all sentences batch by batch; on an out-of-memory error, halve the batch size.

    The batches depend on `lengths` and `budget` alone, so equal sentences give equal batches on every machine with
    enough memory.

    Args:
        lengths: Tokens per sentence, from the longest to the shortest.
        budget: Largest number of padded tokens in a batch: rows times the longest row. A longer sentence is a batch.
        submit: Starts the batch of sentences `start` to `end` and returns a function that waits for it. If this
            function raises an out-of-memory error, the same sentences are submitted again in smaller batches.
        ahead: Number of batches to submit before collecting the first one, to keep several workers busy.

    Raises:
        TranslationError: A batch of one sentence does not fit.
    """
    ranges = deque([(0, len(lengths))] if lengths else [])
    running: deque[tuple[int, int, Callable[[], None]]] = deque()
    while ranges or running:
        while ranges and len(running) < ahead:
            start, stop = ranges.popleft()
            end = min(stop, start + max(1, budget // max(1, lengths[start])))
            running.append((start, end, submit(start, end)))
            if end < stop:
                ranges.appendleft((end, stop))
        start, end, collect = running.popleft()
        if _fits(collect):
            continue
        if end - start == 1:
            raise TranslationError(
                f"one sentence of {lengths[start]} tokens does not fit into the device's memory. Lower "
                "max_source_tokens or beam, or free memory on the device."
            )
        budget = min(budget, max(1, (end - start) // 2 * lengths[start]))
        ranges.appendleft((start, end))
        logger.warning(
            "out of memory with %d sentences of %d tokens; retrying with half as many", end - start, lengths[start]
        )


def _fits(collect: Callable[[], None]) -> bool:
    try:
        collect()
    except MemoryError:
        pass
    except RuntimeError as error:
        # RuntimeError is the only common class of torch, the CPU allocator and CTranslate2: check the message.
        if not any(sign in str(error).lower() for sign in _OUT_OF_MEMORY):
            raise
    else:
        return True
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()  # does nothing without a GPU
    return False


class Engine(Protocol):
    """Interface of a translation engine: source pieces to target pieces."""

    ahead: int
    """Number of batches to submit before collecting the first one."""

    token_budget: int
    """Default number of padded source tokens in a batch."""

    forces_end: bool
    """Whether the search writes an end mark as the last piece at the largest cap of a batch, instead of a cut."""

    def submit(self, sources: list[list[int]], caps: list[int]) -> Callable[[], Decoded]:
        """Start to translate a batch.

        Args:
            sources: Source pieces per sentence, end mark included, from the longest to the shortest.
            caps: Largest number of pieces per translation, end mark counted.

        Returns:
            A function that waits for the batch and returns it, or raises if it did not fit into memory.
        """
        ...


class Vocabulary:
    """Vocabulary of one model: text to source pieces with target token and end mark, and target pieces to text.

    Attributes:
        positions: Longest sequence that the model has positions for.

    Raises:
        TranslationError: The folder's model is no MarianMT model, lacks a file, or does not have the target language.
    """

    def __init__(self, folder: Path, config: TranslatorConfig) -> None:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        _require_marian(folder, settings)
        self.positions = int(settings["max_position_embeddings"])
        self._tokenizer = MarianTokenizer.from_pretrained(folder, local_files_only=True)
        self._prefix = self._target_prefix(config.target_token)
        self._room = min(config.max_source_tokens, self.positions) - len(self._prefix) - 1
        self.pad: int = self._tokenizer.pad_token_id
        self.eos: int = self._tokenizer.eos_token_id

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the source pieces of each text: target token (if any), pieces up to the limit, end mark."""
        pieces: list[list[str]] = self._tokenizer.spm_source.encode(list(texts), out_type=str)
        number, unknown = self._tokenizer.encoder, self._tokenizer.unk_token_id
        return [[*self._prefix, *(number.get(p, unknown) for p in row[: self._room]), self.eos] for row in pieces]

    def truncates(self, text: str, encoded: Sequence[int]) -> bool:
        """Return whether a text has more pieces than `encode` returned."""
        return len(encoded) > self._room and len(self._tokenizer.spm_source.encode(text)) > self._room

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of target pieces, without padding, end mark, target and unknown tokens."""
        piece = self._tokenizer.decoder
        pieces = [[piece[number] for number in row if number not in self._silent] for row in rows]
        texts: list[str] = self._tokenizer.spm_target.decode(pieces) if pieces else []
        return [text.replace(_SPACE, " ").strip() for text in texts]

    def names(self, row: Sequence[int]) -> list[str]:
        """Return the names of pieces by their numbers."""
        piece = self._tokenizer.decoder
        return [piece[number] for number in row]

    def numbers(self, pieces: Sequence[str]) -> list[int]:
        """Return the numbers of pieces by their names."""
        number = self._tokenizer.encoder
        return [number[piece] for piece in pieces]

    @cached_property
    def _silent(self) -> frozenset[int]:
        codes = {number for piece, number in self._tokenizer.encoder.items() if re.fullmatch(r">>.+<<", piece)}
        return frozenset({self.pad, self.eos, self._tokenizer.unk_token_id} | codes)

    def _target_prefix(self, token: str | None) -> list[int]:
        codes = self._tokenizer.supported_language_codes
        if token is None:
            if len(codes) > 1:
                raise TranslationError(
                    f"the model translates into several languages ({_some(codes)}), but target_token is not set. Set "
                    "target_token."
                )
            return []
        if token not in self._tokenizer.encoder:
            raise TranslationError(f"target_token {token} is not in the model's vocabulary (expected: {_some(codes)})")
        return [self._tokenizer.encoder[token]]


def _require_marian(folder: Path, settings: Mapping[str, object]) -> None:
    kind = settings.get("model_type")
    if kind != "marian":
        raise TranslationError(
            f"{folder}: model_type is {kind!r}, expected 'marian'. Use a MarianMT model, such as "
            "Helsinki-NLP/opus-mt-en-de."
        )
    if missing := [name for name in _FILES if not (folder / name).is_file()]:
        raise TranslationError(f"{folder}: no {', '.join(missing)}, expected the files of a MarianMT model. Copy them.")


def _some(codes: Sequence[str]) -> str:
    shown = ", ".join(sorted(codes)[:12]) or "none, since the model has one target language; remove target_token"
    return shown if len(codes) <= 12 else f"{shown} and {len(codes) - 12} more"


class BatchedTranslator:
    """Translator of one direction, on any engine."""

    def __init__(self, engine: Engine, vocabulary: Vocabulary, config: TranslatorConfig, token_budget: int) -> None:
        self.engine = engine
        self.vocabulary = vocabulary
        self._config = config
        self._token_budget = token_budget
        normalizes = config.normalize_punctuation
        self._prepared = MosesPunctNormalizer(config.source_lang).normalize if normalizes else str

    def translate(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> list[Translation]:
        """Translate all texts, in the order given; texts without letters and digits are returned unchanged.

        The result depends on `texts`, the configuration and the token budget alone.

        Args:
            texts: Sentences in the source language.
            on_progress: Called after each batch with sentences done, total sentences, and target tokens with their
                rate.

        Raises:
            TranslationError: A batch of one sentence does not fit the device.
        """
        result = [Translation(text, 0, 0.0) for text in texts]
        nonempty = [position for position, text in enumerate(texts) if any(map(str.isalnum, text))]
        prepared = [self._prepared(texts[position]) for position in nonempty]
        sources = self.vocabulary.encode(prepared)
        # The longest first: a device with too little memory fails at once, not after an hour.
        order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
        done, tokens, started = len(texts) - len(nonempty), 0, time.monotonic()

        def submit(start: int, end: int) -> Callable[[], None]:
            rows = order[start:end]
            batch = [sources[row] for row in rows]
            caps = [self.cap(len(source)) for source in batch]
            decode = self.engine.submit(batch, caps)

            def collect() -> None:
                nonlocal done, tokens
                decoded = decode()
                translated = self.vocabulary.decode([pieces for pieces, _ in decoded])
                for row, text, (pieces, score), cap in zip(rows, translated, decoded, caps, strict=True):
                    is_cut = self.vocabulary.truncates(prepared[row], sources[row])
                    room = cap - (self.engine.forces_end and cap == max(caps))
                    lost: Lost = "source" if is_cut else "translation" if len(pieces) >= room else ""
                    result[nonempty[row]] = Translation(text, len(pieces), score, lost)
                    tokens += len(pieces)
                done += len(rows)
                if on_progress is not None:
                    rate = tokens / max(1e-9, time.monotonic() - started)
                    on_progress(done, len(texts), f"{tokens:,} target tokens, {rate:,.0f}/s")

            return collect

        run_in_batches([len(sources[row]) for row in order], self._token_budget, submit, self.engine.ahead)
        return result

    def cap(self, source_tokens: int) -> int:
        """Return the largest number of pieces of a translation, end mark counted, by source length and model."""
        return min(self.vocabulary.positions - 1, self._config.new_tokens_cap(source_tokens))
