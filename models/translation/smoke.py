"""A smoke test before hours of translating: a handful of plain sentences must come out as language.

A model that is broken (wrong vocabulary beside the weights, a bad download, the wrong target token) does not fail: it
writes the same word for ever, or nothing, for every sentence (OPUS-MT-train issue 96).
"""

from collections.abc import Mapping, Sequence

import polars as pl

from models.translation.errors import SmokeTestError
from models.translation.filters import FilterConfig, verdict
from models.translation.translator import Translator

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


def smoke_test(
    translator: Translator, source_lang: str, target_lang: str, pinned: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """Translate a few plain sentences and stop unless all of them come out as language.

    Args:
        translator: The translator to try.
        source_lang: Language of the sentences to try; without ``pinned``, those outside ``PLAIN_SENTENCES`` go untried.
        target_lang: Language that must come out; one of ``PLAIN_SENTENCES`` is compared with the sentences there.
        pinned: Sentences with the translations that this very translator must give, in place of the plain ones.

    Returns:
        Sentences with their translations, to be shown.

    Raises:
        SmokeTestError: Empty, looping, far too long or short, all alike, not the language, or not as pinned.
    """
    sentences = tuple(pinned) if pinned else PLAIN_SENTENCES.get(source_lang, ())
    outputs = [translation.text for translation in translator.translate(sentences)]
    told = list(zip(sentences, outputs, strict=True))
    fault = _difference(told, pinned) if pinned else _fault(told, PLAIN_SENTENCES.get(target_lang))
    if fault is not None:
        shown = "; ".join(f"{source!r} → {text!r}" for source, text in told)
        raise SmokeTestError(
            f"the {source_lang}→{target_lang} translator fails its smoke test: {fault}. Got {shown}. Expected plain "
            "translations: check that weights, vocab.json and *.spm belong together and that target_token is right"
        )
    return told


def _difference(told: Sequence[tuple[str, str]], pinned: Mapping[str, str]) -> str | None:
    wrong = [source for source, text in told if text != pinned[source]]
    if not wrong:
        return None
    return f"{len(wrong)} of {len(told)} differ from the pinned translations, first {wrong[0]!r} → {pinned[wrong[0]]!r}"


def _fault(told: Sequence[tuple[str, str]], expected: Sequence[str] | None) -> str | None:
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
