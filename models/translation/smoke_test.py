"""Smoke test of a translator on a few plain sentences, before hours of translation.

A broken model (a vocabulary that does not match the weights, a bad download, the wrong target token) does not raise. It
repeats one word, or writes nothing, for every sentence (OPUS-MT-train issue 96). A translator must reproduce pinned
translations exactly; without pins, its output must look like the target language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bsl.models.errors import TranslationError
from bsl.models.translation.filters import FILTERS, Texts, translation_reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.models.translation.batching import BatchedTranslator
    from bsl.models.translation.config import Pin, TranslatorConfig

PLAIN_SENTENCES: Mapping[str, tuple[str, ...]] = {
    "en": ("The boy is reading a book.", "Two dogs are running in the snow.", "She bought bread and milk today."),
    "de": ("Der Junge liest ein Buch.", "Zwei Hunde laufen durch den Schnee.", "Sie hat heute Brot und Milch gekauft."),
    "fr": (
        "Le garçon lit un livre.",
        "Deux chiens courent dans la neige.",
        "Elle a acheté du pain et du lait aujourd'hui.",
    ),
    "es": ("El niño lee un libro.", "Dos perros corren por la nieve.", "Ella compró pan y leche hoy."),
    "tr": ("Çocuk bir kitap okuyor.", "İki köpek karda koşuyor.", "Bugün ekmek ve süt aldı."),
    "ar": ("الولد يقرأ كتابا.", "كلبان يركضان في الثلج.", "اشترت الخبز والحليب اليوم."),
}
"""Three short sentences, the same in each language, that are easy for any translator."""

MIN_OVERLAP = 0.2
"""Least mean overlap of letter trigrams with the expected sentences; another language has at most 0.17."""


def smoke_test(translator: BatchedTranslator, config: TranslatorConfig) -> list[tuple[str, str]]:
    """Translate a few sentences, and raise unless they equal the pinned ones or look like the target language.

    Args:
        translator: The translator to test.
        config: The translator's languages and pins. Without pins, the test uses `PLAIN_SENTENCES`. A source language
            without such sentences is not tested; a target language without them is not compared.

    Returns:
        Sentences with their translations, for display.

    Raises:
        TranslationError: Translations differ from the pins; or are empty, looping, far too long or short, all equal, or
            in another language.
    """
    sentences = [pin.source for pin in config.pinned] or list(PLAIN_SENTENCES.get(config.source_lang, ()))
    outputs = [translation.text for translation in translator.translate(sentences)]
    translated = list(zip(sentences, outputs, strict=True))
    if config.pinned:
        fault = _difference(config.pinned, outputs)
    else:
        fault = _fault(translated, PLAIN_SENTENCES.get(config.target_lang))
    if fault is not None:
        raise TranslationError(
            f"the {config.source_lang}→{config.target_lang} translator {config.model} fails its smoke test: {fault}. "
            "Check that weights, vocab.json and *.spm are of the same model, and that target_token is right."
        )
    return translated


def _difference(pins: Sequence[Pin], outputs: Sequence[str]) -> str | None:
    wrong = [(pin, text) for pin, text in zip(pins, outputs, strict=True) if text != pin.translation]
    if not wrong:
        return None
    shown = "; ".join(f"{pin.source!r}: expected {pin.translation!r}, found {text!r}" for pin, text in wrong)
    return f"{len(wrong)} of {len(pins)} differ from the pinned translations: {shown}"


def _fault(translated: Sequence[tuple[str, str]], expected: Sequence[str] | None) -> str | None:
    found = _oddity(translated, expected)
    shown = "; ".join(f"{source!r} → {text!r}" for source, text in translated)
    return found and f"{found}. Expected plain translations, found {shown}"


def _oddity(translated: Sequence[tuple[str, str]], expected: Sequence[str] | None) -> str | None:
    frame = pl.DataFrame(translated, schema={"source": pl.String, "text": pl.String}, orient="row")
    reasons = frame.select(translation_reason(Texts(pl.col("source"), pl.col("text")), FILTERS))["reason"].drop_nulls()
    if len(reasons):
        return f"{len(reasons)} of {len(translated)} are bad ({', '.join(reasons.unique(maintain_order=True))})"
    if len(translated) > 1 and frame["text"].n_unique() == 1:
        return "every sentence gets the same translation"
    if not translated or expected is None:
        return None
    shares = [_overlap(text, reference) for (_, text), reference in zip(translated, expected, strict=True)]
    overlap = sum(shares) / len(shares)
    if overlap < MIN_OVERLAP:
        reference = "; ".join(expected)
        return (
            f"the output shares {overlap:.0%} of its letter trigrams with {reference!r} (expected at least "
            f"{MIN_OVERLAP:.0%})"
        )
    return None


def _overlap(text: str, other: str) -> float:
    """Return the Dice coefficient of two texts' sets of letter trigrams, in [0, 1]."""
    ours, theirs = ({t[i : i + 3] for i in range(len(t) - 2)} for t in (text.lower(), other.lower()))
    return 2 * len(ours & theirs) / max(1, len(ours) + len(theirs))
