"""What decides a translation: the model, the languages, the search and the limits on it."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Backend = Literal["transformers", "ctranslate2"]
Precision = Literal["fp32", "bf16", "fp16", "int8"]

TRANSLATION_VERSION = 3
"""Raise it in the commit that changes what a translator writes: it is part of every translator's fingerprint."""


class Pin(BaseModel):
    """A translation that a translator must reproduce before it is let loose on a corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    source: str = Field(min_length=1)
    """A sentence in the source language."""

    translation: str
    """What the translator wrote for it when it was known to be sound, to the letter."""


class TranslatorConfig(BaseModel):
    """One direction of translation; every field but `pinned` can change what comes out, so it enters keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """Where the model comes from: a local folder, `embedded:<name>` or a Hub id (Helsinki-NLP/opus-mt-en-de)."""

    revision: str | None = None
    """Commit of a Hub id; None for folders and embedded models, whose files are digested instead."""

    source_lang: str = Field(pattern=r"^[a-z]{2,3}$")
    """Language of the sentences, ISO 639-1 (or 639-3 where there is no shorter code)."""

    target_lang: str = Field(pattern=r"^[a-z]{2,3}$")
    """Language of the translations, ISO 639-1 (or 639-3)."""

    target_token: str | None = Field(None, pattern=r"^>>.+<<$")
    """Token that tells a model of several targets which one is meant, such as `>>deu<<` (OPUS-MT model cards)."""

    backend: Literal["auto", "transformers", "ctranslate2"] = "auto"
    """Engine that runs the model; `auto` takes ctranslate2 on a CPU or an NVIDIA GPU that it can use at the precision
    asked for, transformers elsewhere. Keys hold what it resolved to."""

    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = "auto"
    """Number format of the arithmetic; `auto` is int8 for ctranslate2 and fp32 for transformers on a CPU, fp16 on a
    GPU. Keys hold what it resolved to."""

    beam: int = Field(1, ge=1, le=16)
    """Hypotheses kept at each step; 1 is greedy, 4 to 6 the habit of OPUS-MT at 3 times the cost (PERF A)."""

    no_repeat_ngram: int = Field(0, ge=0, le=10)
    """No sequence of this many pieces may occur twice in a translation, which breaks loops; 0 lets it."""

    normalize_punctuation: bool = False
    """Bring quotes, dashes and spaces into the form that Moses gives them; OPUS-MT was trained on such text."""

    max_source_tokens: int = Field(256, ge=4, le=1024)
    """Longest source in pieces, end mark included; the rest of a longer sentence is not read."""

    new_tokens_ratio: float = Field(2.0, gt=0, le=10)
    """A translation may have this many pieces per source piece (plus the constant below): a loop ends there."""

    new_tokens_constant: int = Field(10, ge=1, le=512)
    """Pieces granted on top of the ratio, so that very short sentences have room."""

    pinned: tuple[Pin, ...] = ()
    """Translations to reproduce before any large run. Embedded models bring their own; without pins the output is
    only looked at for being language."""

    def new_tokens_cap(self, source_tokens: int) -> int:
        """Most pieces that the translation of a source of `source_tokens` pieces may have, end mark included."""
        return math.ceil(self.new_tokens_ratio * source_tokens) + self.new_tokens_constant
