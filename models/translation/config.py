"""Settings of a translator (model, languages, search, limits), and the catalog of translators for recipes.

OPUS-MT (Tiedemann and Thottingal 2020) has one model per direction. All of them were trained on text with Moses'
punctuation ("normalization + SentencePiece" on their cards), and none has pinned translations here. Revisions are Hub
commits that public sources cite with the model's files. Models without a cited commit (only `bsl adapt` uses them) have
no revision: the newest commit is loaded, and artifact keys contain the digest of its files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from bsl.storage.filesystem.urls import Named
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping


Backend = Literal["transformers", "ctranslate2"]
Precision = Literal["fp32", "bf16", "fp16", "int8"]

TRANSLATION_VERSION = 3
"""Increase this in a commit that changes translations; it is part of every translator's fingerprint."""


class Pin(Record):
    """A translation that a translator must reproduce before it translates a corpus."""

    source: str = Field(min_length=1)
    """A sentence in the source language."""

    translation: str
    """Exact translation by the intact translator."""


@dataclass(frozen=True)
class Resources:
    """Compute resources of a translator.

    Attributes:
        device: `cpu`, `cuda` (all GPUs), `cuda:1` (one GPU) or, for transformers, another torch device.
        cores: CPU cores to use.
        replicas: Batches that CTranslate2 computes at once, per GPU or on the CPU; None: four per GPU, or one per
            `threads` cores. Transformers computes one batch at a time, on all cores.
        threads: CPU threads per batch.
    """

    device: str
    cores: int
    replicas: int | None = None
    threads: int = 1


class TranslatorConfig(Record):
    """Settings of one direction; every field except `pinned` can change translations, so it is part of keys."""

    model: Named
    """Where the model comes from: a local folder, `embedded:<name>` or a Hub id (Helsinki-NLP/opus-mt-en-de)."""

    revision: str | None = None
    """Commit of a Hub id; None for folders and embedded models, whose files are digested instead."""

    source_lang: str = Field(pattern=r"^[a-z]{2,3}$")
    """Language of the sentences, ISO 639-1 (or 639-3 if there is no shorter code)."""

    target_lang: str = Field(pattern=r"^[a-z]{2,3}$")
    """Language of the translations, ISO 639-1 (or 639-3)."""

    target_token: str | None = Field(None, pattern=r"^>>.+<<$")
    """Token that selects the target language of a multilingual model, such as `>>deu<<` (OPUS-MT model cards)."""

    backend: Literal["auto", "transformers", "ctranslate2"] = "auto"
    """Engine that runs the model. `auto` is ctranslate2 on a CPU, and on an NVIDIA GPU that supports the precision;
    otherwise transformers. Keys contain the resolved engine."""

    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = "auto"
    """Number format of the arithmetic; `auto` is int8 for ctranslate2 and fp32 for transformers on a CPU, fp16 on a
    GPU. Keys contain the resolved precision."""

    beam: int = Field(1, ge=1, le=16)
    """Beam size; 1 is greedy, OPUS-MT usually has 4 to 6, at 3 times the cost (PERF A)."""

    no_repeat_ngram: int = Field(0, ge=0, le=10)
    """Number of pieces of a sequence that may not occur twice in a translation, which prevents loops; 0 allows all."""

    normalize_punctuation: bool = False
    """Normalise quotes, dashes and spaces as Moses does; OPUS-MT was trained on such text."""

    max_source_tokens: int = Field(256, ge=4, le=1024)
    """Longest source in pieces, end mark included; longer sentences are truncated."""

    new_tokens_ratio: float = Field(2.0, gt=0, le=10)
    """Largest number of target pieces per source piece, before adding the constant below; it ends loops."""

    new_tokens_constant: int = Field(10, ge=1, le=512)
    """Pieces allowed in addition to the ratio, so that very short sentences have room."""

    pinned: tuple[Pin, ...] = ()
    """Known translations; the smoke test must reproduce them before a large run. If empty, it only checks the language.
    Embedded models have their own."""

    def new_tokens_cap(self, source_tokens: int) -> int:
        """Return the largest number of pieces of a translation of `source_tokens` pieces, end mark included."""
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
    # For models this small, beam 4 gains 1 to 3 BLEU, and forbidding repeats prevents all loops (BENCHMARKS.md).
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
"""Helsinki-NLP's models by direction, with greedy search and the device's default precision."""

MINI: Final = _by_direction(
    _mini("en", "de", ">>deu<<"),
    _mini("en", "fr", ">>fra<<"),
    _mini("en", "es", ">>spa<<"),
    _mini("en", "ar", ">>ara<<"),
    _mini("en", "tr", ">>tur<<"),
    _mini("de", "en"),
    _mini("fr", "en"),
)
"""The embedded models by direction, with the search that `python -m assets verify` measures."""

CATALOGS: Final[Mapping[str, Mapping[str, TranslatorConfig]]] = {"embedded": MINI, "opus-mt": OPUS_MT}
"""Name of a catalog in settings and options → its translators."""
