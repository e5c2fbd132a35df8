"""The translators that recipes name: which model, which target token, which text it was trained on.

OPUS-MT (Tiedemann and Thottingal 2020) names one model a direction. All of them were trained on text with Moses'
punctuation ("normalization + SentencePiece" on their cards). Revisions are commits of the Hub that public sources cite
with the model's files. No translation is pinned, for the models could not be run where this was written. Where no
source names a commit (models that only `bsl adapt` takes) the newest is taken, and keys hold the digest of its files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.translation.config import TranslatorConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


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
