"""Training sentences and sentence pairs of the small models, from licensed collections without evaluation texts.

Closeness of sentences to a domain is that of Moore and Lewis (2010), with unigrams.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SENTENCE_END = re.compile(r"""(?<=[.!?])["'”’)]*\s+(?=["'“‘(]?[A-Z0-9])""")
FIELD = re.compile(r"^[A-Z][A-Za-z _]{1,24}\d*: ")
WORDS = range(4, 61)
_WORD = re.compile(r"\w+")
LANGUAGES: Final = {"de": "deu", "fr": "fra", "es": "spa", "ar": "ara", "tr": "tur"}
"""Languages of the translators: ISO 639-1 → the code in the target token."""

PARALLEL: Final = tuple(f"tatoeba_en_{language}/all" for language in LANGUAGES)
NLI: Final = ("snli_train_part/pairs", "snli_tok/dev", "snli_tok/test")
MULTINLI: Final = ("multinli_sample/raw_6k", "multinli_sample/train_20k")
ENGLISH: Final = (*NLI, *PARALLEL, "ni_text/all", "novels/docs", "wikitext2_validtest/all", *MULTINLI)
"""Collections that the masked LM learns from."""
MULTILINGUAL: Final = (NLI[0], *PARALLEL, "ni_text/all")
"""Collections that the multilingual masked LM learns from."""

EVALUATION: Final = (
    *(f"sts{year}/test" for year in range(12, 17)),
    *(f"stsb/{split}" for split in ("train", "dev", "test")),
)
"""Sets whose sentences no model may see."""

LIMITS: Final = (200_000, 40_000, 150_000, 220_000, 90_000, 20_000, 60_000)
"""Largest numbers of sentences of SNLI, its dev and test, Tatoeba, instructions, novels, WikiText, MultiNLI."""


def english_sentences(frames: Mapping[str, pl.DataFrame], seed: int) -> list[str]:
    """Return the masked LM's sentences: unique, shuffled, none from an evaluation set.

    Args:
        frames: All collections of `ENGLISH` and `EVALUATION` by name.
        seed: Seed of the draw and the order.
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
    """Return the multilingual masked LM's sentences: English from fewer collections, and the pairs' other languages.

    Args:
        frames: All collections of `MULTILINGUAL` and `EVALUATION` by name.
        kept_out: Further sentences to exclude.
        seed: Seed of the draw and the order.
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
    """Return all sentences of the evaluation sets."""
    return [text for name in EVALUATION for side in ("sentence1", "sentence2") for text in frames[name][side]]


def round_trip_sentences(
    frames: Mapping[str, pl.DataFrame], kept_out: Iterable[str], captions: int, everyday: int
) -> list[str]:
    """Return English sentences of 4 to 32 words for back-translation: SNLI's captions and Tatoeba's everyday sentences.

    Args:
        frames: SNLI and all collections of `PARALLEL` and `EVALUATION` by name.
        kept_out: Sentences that the translators are evaluated or used on.
        captions: Largest number of sentences from SNLI.
        everyday: Largest number of sentences from Tatoeba.
    """
    groups = [_both(frames[NLI[0]]), [text for name in PARALLEL for text in frames[name]["en"]]]
    fitting = [sorted({text.strip() for text in group if 4 <= len(text.split()) <= 32}) for group in groups]
    return training_sentences(fitting, (captions, everyday), [*evaluation_sentences(frames), *kept_out], seed=0)


def _both(frame: pl.DataFrame) -> list[str]:
    return [*frame["premise"], *frame["hypothesis"]]


def is_sentence(text: str) -> bool:
    """Return whether a text has 4 to 60 words: enough context to predict from, and no run-on sentence."""
    return len(text.split()) in WORDS


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a passage, split at line ends and sentence ends, without field prefixes («Fact: »)."""
    found: list[str] = []
    for line in text.splitlines():
        stripped = FIELD.sub("", line.strip())
        found.extend(part.strip() for part in SENTENCE_END.split(stripped) if part)
    return [s for s in found if is_sentence(s)]


def prose_sentences(text: str) -> list[str]:
    """Return the sentences of a book, after joining the lines of paragraphs; headings in capitals are dropped."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        joined = " ".join(paragraph.split())
        found.extend(part.strip() for part in SENTENCE_END.split(joined) if part and not part.isupper())
    return [s for s in found if is_sentence(s)]


def wiki_sentences(lines: Iterable[str]) -> list[str]:
    """Return the sentences of WikiText lines without ` @-@ ` marks; headings and sentences with `<unk>` are dropped."""
    found: list[str] = []
    for line in lines:
        if not line.strip().startswith("="):
            plain = re.sub(r" @(.)@ ", r"\1", line.strip())
            found.extend(s for s in re.split(r"(?<= [.!?]) +", plain) if "<unk>" not in s)
    return [s for s in found if is_sentence(s)]


def fingerprint(sentence: str) -> str:
    """Return a sentence's lower-cased letters and digits, so that case, spaces and punctuation do not matter."""
    return "".join(c for c in sentence.lower() if c.isalnum())


def training_sentences(
    groups: Sequence[Sequence[str]], limits: Sequence[int], forbidden: Iterable[str], seed: int
) -> list[str]:
    """Return unique sentences of all groups, at most `limits[i]` of group i, none of `forbidden`, shuffled.

    Args:
        groups: Sentences by collection.
        limits: Largest number of sentences of each collection, drawn at random.
        forbidden: Evaluation sentences, compared by `fingerprint`.
        seed: Seed of the draw and the order.
    """
    generator = np.random.default_rng(seed)
    seen = {fingerprint(sentence) for sentence in forbidden}
    chosen: list[str] = []
    for group, limit in zip(groups, limits, strict=True):
        count = 0
        for index in generator.permutation(len(group)):
            mark = fingerprint(group[index])
            if count < limit and mark and mark not in seen:
                seen.add(mark)
                chosen.append(group[index])
                count += 1
    return [chosen[i] for i in generator.permutation(len(chosen))]


def split_pairs(
    pairs: dict[str, pl.DataFrame], held_out: int, seed: int
) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """Split off held-out pairs of every language that share no sentence with the training pairs.

    English sides are compared across all languages. Sentences are compared by letters and digits alone.

    Args:
        pairs: By language, frames with the columns `en` and `other`.
        held_out: Number of held-out pairs per language (at most a twelfth of its pairs), with unique English sides.
        seed: Seed of the draw.

    Returns:
        Training and held-out pairs by language, as given.
    """
    marked = {language: _mark(frame) for language, frame in sorted(pairs.items())}
    excluded: dict[str, pl.DataFrame] = {}
    for number, (language, frame) in enumerate(marked.items()):
        unique = frame.unique("en_mark", keep="first", maintain_order=True).unique("other_mark", maintain_order=True)
        order = np.random.default_rng([seed, number]).permutation(len(unique))
        excluded[language] = unique[order[: min(held_out, len(frame) // 12)]]
    english = pl.concat([frame["en_mark"] for frame in excluded.values()]).implode()
    train = {
        language: frame.filter(
            ~pl.col("en_mark").is_in(english), ~pl.col("other_mark").is_in(excluded[language]["other_mark"].implode())
        ).select("en", "other")
        for language, frame in marked.items()
    }
    return train, {language: frame.select("en", "other") for language, frame in excluded.items()}


def _mark(frame: pl.DataFrame) -> pl.DataFrame:
    marks = [pl.Series(f"{side}_mark", [fingerprint(text) for text in frame[side]]) for side in ("en", "other")]
    return frame.with_columns(marks).filter(pl.col("en_mark") != "", pl.col("other_mark") != "")


def closeness(texts: Sequence[str], domain: Iterable[str], general: Iterable[str]) -> np.ndarray:
    """Score how much more likely each text is in a domain than in a general corpus.

    Args:
        texts: Sentences to score.
        domain: Sentences of the domain.
        general: Sentences of the general corpus.

    Returns:
        (N,) mean over words of log p(word | domain) − log p(word | general), add-one smoothed; higher is closer.
    """
    one, other = _frequencies(domain), _frequencies(general)
    offset = math.log((other.total() + len(other) + 1) / (one.total() + len(one) + 1))
    ratios = {word: math.log((one[word] + 1) / (other[word] + 1)) + offset for word in {*one, *other}}
    return np.array([_mean([ratios.get(word, offset) for word in _words(text)]) for text in texts])


def nearest(scores: np.ndarray, share: float) -> np.ndarray:
    """Return a mask of the highest `share` of scores, ties included."""
    mask: np.ndarray = scores >= np.quantile(scores, 1.0 - share)
    return mask


def _frequencies(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
