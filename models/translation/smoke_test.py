"""A smoke test before hours of translating: a handful of plain sentences must come out as language.

A model that is broken (wrong vocabulary beside the weights, a bad download, the wrong target token) does not fail: it
writes the same word for ever, or nothing, for every sentence (OPUS-MT-train issue 96). Where translations are pinned,
the translator must reproduce them to the letter; where none are, its output must look like the language asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.errors import SmokeTestError
from models.translation.filters import FilterConfig, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.translation.batching import BatchedTranslator
    from models.translation.config import Pin, TranslatorConfig

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
"""Three short sentences, the same in each language, that any translator has seen the like of."""

MIN_OVERLAP = 0.2
"""Least mean share of letter triples common with the expected sentence; in another language it is at most 0.17."""


def smoke_test(translator: BatchedTranslator, config: TranslatorConfig) -> list[tuple[str, str]]:
    """Translate a few sentences and stop unless they come out as pinned, or, without pins, as language.

    Args:
        translator: The translator to try.
        config: Its languages and pins. Without pins, `PLAIN_SENTENCES` are tried; a source language that has none
            goes untried, and a target language that has none is compared with nothing.

    Returns:
        Sentences with their translations, to be shown.

    Raises:
        SmokeTestError: Not as pinned; or empty, looping, far too long or short, all alike, not the language.
    """
    sentences = [pin.source for pin in config.pinned] or list(PLAIN_SENTENCES.get(config.source_lang, ()))
    outputs = [translation.text for translation in translator.translate(sentences)]
    told = list(zip(sentences, outputs, strict=True))
    if config.pinned:
        fault = _difference(config.pinned, outputs)
    else:
        fault = _fault(told, PLAIN_SENTENCES.get(config.target_lang))
    if fault is not None:
        raise SmokeTestError(
            f"the {config.source_lang}→{config.target_lang} translator {config.model} fails its smoke test: {fault}. "
            "Check that weights, vocab.json and *.spm belong together and that target_token is right"
        )
    return told


def _difference(pins: Sequence[Pin], outputs: Sequence[str]) -> str | None:
    wrong = [(pin, text) for pin, text in zip(pins, outputs, strict=True) if text != pin.translation]
    if not wrong:
        return None
    shown = "; ".join(f"{pin.source!r}: expected {pin.translation!r}, found {text!r}" for pin, text in wrong)
    return f"{len(wrong)} of {len(pins)} differ from the pinned translations: {shown}"


def _fault(told: Sequence[tuple[str, str]], expected: Sequence[str] | None) -> str | None:
    found = _oddity(told, expected)
    if found is None:
        return None
    return f"{found}. Expected plain translations, found " + "; ".join(
        f"{source!r} → {text!r}" for source, text in told
    )


def _oddity(told: Sequence[tuple[str, str]], expected: Sequence[str] | None) -> str | None:
    frame = pl.DataFrame(told, schema={"source": pl.String, "text": pl.String}, orient="row")
    reasons = frame.select(verdict(pl.col("source"), pl.col("text"), FilterConfig()))["reason"].drop_nulls()
    if len(reasons):
        return f"{len(reasons)} of {len(told)} are bad ({', '.join(reasons.unique(maintain_order=True))})"
    if len(told) > 1 and frame["text"].n_unique() == 1:
        return "every sentence gets the same translation"
    if not told or expected is None:
        return None
    overlap = sum(_overlap(text, wanted) for (_, text), wanted in zip(told, expected, strict=True)) / len(told)
    if overlap < MIN_OVERLAP:
        wanted = "; ".join(expected)
        return f"the output shares {overlap:.0%} of its letter triples (at least {MIN_OVERLAP:.0%}) with {wanted!r}"
    return None


def _overlap(text: str, other: str) -> float:
    """Dice coefficient of the two texts' sets of letter triples, in [0, 1]."""
    ours, theirs = ({t[i : i + 3] for i in range(len(t) - 2)} for t in (text.lower(), other.lower()))
    return 2 * len(ours & theirs) / max(1, len(ours) + len(theirs))
