"""Which sentences the small models learn from: the collections by name, and how much of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.pretraining.texts import (
    is_sentence,
    prose_sentences,
    sentences_of,
    training_sentences,
    wiki_sentences,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

LANGUAGES: Final = {"de": "deu", "fr": "fra", "es": "spa", "ar": "ara", "tr": "tur"}
"""Languages of the translators: ISO 639-1 → the code in the target token."""

PARALLEL: Final = tuple(f"tatoeba_en_{language}/all" for language in LANGUAGES)
NLI: Final = ("snli_train_part/pairs", "snli_tok/dev", "snli_tok/test")
MULTINLI: Final = ("multinli_sample/raw_6k", "multinli_sample/train_20k")
ENGLISH: Final = (*NLI, *PARALLEL, "ni_text/all", "novels/docs", "wikitext2_validtest/all", *MULTINLI)
"""What the masked LM reads."""
MULTILINGUAL: Final = (NLI[0], *PARALLEL, "ni_text/all")
"""What the multilingual masked LM reads."""

EVALUATION: Final = (
    *(f"sts{year}/test" for year in range(12, 17)),
    *(f"stsb/{split}" for split in ("train", "dev", "test")),
)
"""Sets whose sentences no model may see."""

LIMITS: Final = (200_000, 40_000, 150_000, 220_000, 90_000, 20_000, 60_000)
"""Most sentences of SNLI, its dev and test, Tatoeba, instructions, novels, WikiText, MultiNLI."""


def english_sentences(frames: Mapping[str, pl.DataFrame], seed: int) -> list[str]:
    """The masked LM's sentences: unique, shuffled, none of an evaluation set.

    Args:
        frames: Every collection of `ENGLISH` and `EVALUATION` by name.
        seed: Decides the draw and the order.
    """
    tatoeba = sorted({text for name in PARALLEL for text in frames[name]["en"]})
    multinli = [text for name in MULTINLI for text in _both(frames[name]) if is_sentence(text)]
    groups = [
        sorted(set(_both(frames[NLI[0]]))),
        sorted({text for name in NLI[1:] for text in _both(frames[name])}),
        tatoeba,
        [sentence for text in frames["ni_text/all"]["text"] for sentence in sentences_of(text)],
        [sentence for text in frames["novels/docs"]["text"] for sentence in prose_sentences(text)],
        wiki_sentences(frames["wikitext2_validtest/all"]["text"]),
        multinli,
    ]
    return training_sentences(groups, LIMITS, evaluation_sentences(frames), seed)


def multilingual_sentences(frames: Mapping[str, pl.DataFrame], kept_out: Iterable[str], seed: int) -> list[str]:
    """The multilingual masked LM's sentences: English of fewer kinds, and the other side of every pair by itself.

    Args:
        frames: Every collection of `MULTILINGUAL` and `EVALUATION` by name.
        kept_out: Further sentences that it may not see.
        seed: Decides the draw and the order.
    """
    groups = [
        sorted(set(_both(frames[NLI[0]]))),
        sorted({text for name in PARALLEL for text in frames[name]["en"]}),
        [sentence for text in frames["ni_text/all"]["text"] for sentence in sentences_of(text)],
        *(sorted(set(frames[name][code])) for name, code in zip(PARALLEL, LANGUAGES, strict=True)),
    ]
    limits = (120_000, 120_000, 120_000, *(200_000 for _ in LANGUAGES))
    return training_sentences(groups, limits, [*evaluation_sentences(frames), *kept_out], seed)


def evaluation_sentences(frames: Mapping[str, pl.DataFrame]) -> list[str]:
    """All sentences of the evaluation sets."""
    return [text for name in EVALUATION for side in ("sentence1", "sentence2") for text in frames[name][side]]


def round_trip_sentences(
    frames: Mapping[str, pl.DataFrame], kept_out: Iterable[str], captions: int, everyday: int
) -> list[str]:
    """English sentences of 4 to 32 words for back-translation: SNLI's captions and Tatoeba's everyday ones.

    Args:
        frames: SNLI, every collection of `PARALLEL` and of `EVALUATION` by name.
        kept_out: Sentences that the translators are measured or used on.
        captions: Most of SNLI.
        everyday: Most of Tatoeba.
    """
    groups = [_both(frames[NLI[0]]), [text for name in PARALLEL for text in frames[name]["en"]]]
    fitting = [sorted({text.strip() for text in group if 4 <= len(text.split()) <= 32}) for group in groups]
    return training_sentences(fitting, (captions, everyday), [*evaluation_sentences(frames), *kept_out], seed=0)


def _both(frame: pl.DataFrame) -> list[str]:
    return [*frame["premise"], *frame["hypothesis"]]
