"""What decides a translation: the model, the languages, the search and the limits on it."""

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Precision = Literal["fp32", "bf16", "fp16"]

TRANSLATION_VERSION = 1
"""Raise it in the commit that changes what a translator writes: it is part of every translator's fingerprint."""


class TranslatorConfig(BaseModel):
    """One direction of translation; every field can change the text that comes out, so all of them enter keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """Where the model comes from: a local folder, ``embedded:<name>`` or a Hub id (Helsinki-NLP/opus-mt-en-de)."""

    revision: str | None = None
    """Commit of a Hub id; None for folders and embedded models, whose files are digested instead."""

    source_lang: str = Field(pattern=r"^[a-z]{2,3}$")
    """Language of the sentences, ISO 639-1 (or 639-3 where there is no shorter code)."""

    target_lang: str = Field(pattern=r"^[a-z]{2,3}$")
    """Language of the translations, ISO 639-1 (or 639-3)."""

    target_token: str | None = Field(None, pattern=r"^>>.+<<$")
    """Token that tells a model of several targets which one is meant, such as ``>>deu<<`` (OPUS-MT model cards)."""

    backend: Literal["transformers"] = "transformers"
    """Engine that runs the model."""

    precision: Precision = "fp32"
    """Number format of weights and activations."""

    beam: int = Field(1, ge=1, le=16)
    """Hypotheses kept at each step; 1 is greedy, 4 to 6 the habit of OPUS-MT at 3 times the cost (PERF A)."""

    normalize_punctuation: bool = False
    """Bring quotes, dashes and spaces into the form that Moses gives them; OPUS-MT was trained on such text."""

    max_source_tokens: int = Field(256, ge=4, le=1024)
    """Longest source in pieces, end mark included; the rest of a longer sentence is not read."""

    new_tokens_ratio: float = Field(2.0, gt=0, le=10)
    """A translation may have this many pieces per source piece (plus the constant below): a loop ends there."""

    new_tokens_constant: int = Field(10, ge=1, le=512)
    """Pieces granted on top of the ratio, so that very short sentences have room."""

    def new_tokens_cap(self, source_tokens: int) -> int:
        """Most pieces that the translation of a source of ``source_tokens`` pieces may have, end mark included."""
        return math.ceil(self.new_tokens_ratio * source_tokens) + self.new_tokens_constant
