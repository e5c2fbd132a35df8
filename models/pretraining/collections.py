"""Which sentences the small models learn from: the collections by name, and how much of each."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from models.pretraining.texts import (
    fingerprint,
    is_sentence,
    prose_sentences,
    sentences_of,
    training_sentences,
    wiki_sentences,
)

LANGUAGES: Final = {"de": "deu", "fr": "fra", "es": "spa", "ar": "ara", "tr": "tur"}
"""Languages of the translators: ISO 639-1 → the code in the target token."""

PARALLEL: Final = tuple(f"tatoeba_en_{language}/all" for language in LANGUAGES)
NLI: Final = ("snli_train_part/pairs", "snli_tok/dev", "snli_tok/test")
MULTINLI: Final = ("multinli_sample/raw_6k", "multinli_sample/train_20k")
ENGLISH: Final = (*NLI, *PARALLEL, "ni_text/all", "novels/docs", "wikitext2_validtest/all", *MULTINLI)
"""What the masked LM reads."""

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


def evaluation_sentences(frames: Mapping[str, pl.DataFrame]) -> list[str]:
    """All sentences of the evaluation sets."""
    return [text for name in EVALUATION for side in ("sentence1", "sentence2") for text in frames[name][side]]


def captions(frames: Mapping[str, pl.DataFrame], kept_out: set[str]) -> list[str]:
    """SNLI sentences of 4 to 32 words for back-translation, without those whose fingerprint is in `kept_out`."""
    texts = {text.strip() for text in _both(frames[NLI[0]])}
    return sorted(text for text in texts if 4 <= len(text.split()) <= 32 and fingerprint(text) not in kept_out)


def _both(frame: pl.DataFrame) -> list[str]:
    return [*frame["premise"], *frame["hypothesis"]]
