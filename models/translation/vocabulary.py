"""Convert sentences to piece numbers and back, with Marian's pair of SentencePiece models.

`MarianTokenizer` loops over sentences in Python. Its parts (two SentencePiece models and the vocabulary) do the same
for a whole list at once; a test compares both.

Deviation: text that looks like a special token (`</s>`, `>>fra<<`) is plain text here. The target language comes
from the configuration, so a sentence of the corpus cannot switch it.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING

from transformers import MarianTokenizer

from models.errors import TranslatorLoadError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from models.translation.config import TranslatorConfig

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's mark for a space


class Vocabulary:
    """Vocabulary of one model: text to source pieces with target token and end mark, and target pieces to text.

    Attributes:
        positions: Longest sequence that the model has positions for.
    """

    def __init__(self, folder: Path, config: TranslatorConfig) -> None:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
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
                raise TranslatorLoadError(
                    f"the model translates into several languages ({_some(codes)}), but target_token is not set. Set "
                    "target_token."
                )
            return []
        if token not in self._tokenizer.encoder:
            raise TranslatorLoadError(
                f"target_token {token} is not in the model's vocabulary (expected: {_some(codes)})"
            )
        return [self._tokenizer.encoder[token]]


def _some(codes: Sequence[str]) -> str:
    shown = ", ".join(sorted(codes)[:12]) or "none, since the model has one target language; remove target_token"
    return shown if len(codes) <= 12 else f"{shown} and {len(codes) - 12} more"
