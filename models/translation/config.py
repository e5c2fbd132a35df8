"""What decides a translation: the model, the languages, search and limits; the catalog of those that recipes name.

OPUS-MT (Tiedemann and Thottingal 2020) names one model a direction. All of them were trained on text with Moses'
punctuation ("normalization + SentencePiece" on their cards). Revisions are commits of the Hub that public sources cite
with the model's files. No translation is pinned. Where no
source names a commit (models that only `bsl adapt` takes) the newest is taken, and keys hold the digest of its files.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def _opus(
    source: str, target: str, revision: str | None, name: str = "opus-mt", token: str | None = None
) -> TranslatorConfig:
    return TranslatorConfig(
        model=f"Helsinki-NLP/{name}-{source}-{target}",
        revision=revision,
        source_lang=source,
        target_lang=target,
        target_token=token,
        normalize_punctuation=True,
    )


def _mini(source: str, target: str, token: str | None = None) -> TranslatorConfig:
    name = "marian-mini-en-mul" if source == "en" else "marian-mini-mul-en"
    # For models this small, beam 4 is worth 1 to 3 BLEU, and without repeats no caption loops (BENCHMARKS.md).
    return TranslatorConfig(
        model=f"embedded:{name}", source_lang=source, target_lang=target, target_token=token, beam=4, no_repeat_ngram=3
    )


def _by_direction(*translators: TranslatorConfig) -> dict[str, TranslatorConfig]:
    return {f"{translator.source_lang}-{translator.target_lang}": translator for translator in translators}


OPUS_MT: Final = _by_direction(
    _opus("en", "de", "6183067f769a302e3861815543b9f312c71b0ca4"),
    _opus("de", "en", "1a922f3b32a8e809e17a47d4b32142d8105924e5"),
    _opus("en", "fr", "dd7f6540a7a48a7f4db59e5c0b9c42c8eea67f18"),
    _opus("fr", "en", "c4aed37b318c763fd177aa449b44e3b783cc6c02"),
    _opus("en", "es", "5bc4493d463cf000c1f0b50f8d56886a392ed4ab"),
    _opus("en", "ar", "4e12d44b751cbe4197d537902a325ffdaba8fc87", token=">>ara<<"),
    _opus("en", "tr", "e539fc16a8a1a0ea5950eb339b595bfcce990e90", name="opus-mt-tc-big"),
    _opus("es", "en", None),
    _opus("ar", "en", None),
    _opus("tr", "en", None),
    _opus("en", "it", None),
    _opus("it", "en", None),
    _opus("en", "nl", None),
    _opus("nl", "en", None),
    _opus("en", "ru", None),
    _opus("ru", "en", None),
)
"""Helsinki-NLP's models by direction; greedy, the precision that suits the device."""

MINI: Final = _by_direction(
    _mini("en", "de", ">>deu<<"),
    _mini("en", "fr", ">>fra<<"),
    _mini("en", "es", ">>spa<<"),
    _mini("en", "ar", ">>ara<<"),
    _mini("en", "tr", ">>tur<<"),
    _mini("de", "en"),
    _mini("fr", "en"),
)
"""The embedded models by direction, searched as `bsl assets verify` measures them."""

CATALOGS: Final[Mapping[str, Mapping[str, TranslatorConfig]]] = {"embedded": MINI, "opus-mt": OPUS_MT}
"""Tables of translators by the names that settings and options give them."""
