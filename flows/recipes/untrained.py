"""Recipes without training: bare transformers with several poolings, and published checkpoints.

Each recipe function is generated from an entry of `_READINGS`. The TF-IDF column of their reports is fitted on the
training corpus of the other recipes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flows.config import PipelineConfig
from flows.recipes.paper import multilingual
from flows.recipes.shared import ALONE, EMBEDDED_STSB, ENCODERS, NLI, NO_VIEWS, SAMPLE, as_printed, changed
from models.encoder.config import EncoderConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.encoder.config import Pooling
    from models.evaluation.config import EvaluationConfig

GLOVE: Final = "glove.840B.300d.txt"
_TFIDF: Final = ("Unigram-TFIDF", "Unigram-TFIDF on AFS")
_ENGLISH: Final = as_printed("stsb/dev", "sts", "senteval", "afs")


@dataclass(frozen=True)
class Reading:
    """An encoder and its pooling.

    Attributes:
        name: Name of the recipe.
        purpose: First line of the recipe's docstring.
        model: A key of `ENCODERS`, an embedded model or a file of word vectors.
        published: Published rows that the report shows.
        pooling: As in `EncoderConfig`; a saved encoder keeps its own.
        normalize: As in `EncoderConfig`.
        evaluation: Sets to score on.
    """

    name: str
    purpose: str
    model: str
    published: tuple[str, ...]
    pooling: Pooling = "mean"
    normalize: bool = False
    evaluation: EvaluationConfig = _ENGLISH

    @property
    def encoder(self) -> EncoderConfig:
        """Encoder settings, pinned to the commit in `ENCODERS` if there is one."""
        base = ENCODERS[self.model] if self.model in ENCODERS else EncoderConfig(model=self.model)
        return changed(base, pooling=self.pooling, normalize=self.normalize)


def _recipe(reading: Reading) -> Callable[[], PipelineConfig]:
    """Return the recipe function of an encoder, as `bsl recipes` lists it."""

    def make() -> PipelineConfig:
        return PipelineConfig(
            title=f"{reading.name}: {reading.purpose.removesuffix('.')}",
            ingest=SAMPLE if reading.evaluation == EMBEDDED_STSB else NLI,
            augment=NO_VIEWS,
            pairs=ALONE,
            encoder=reading.encoder,
            training=None,
            evaluation=reading.evaluation,
            published=reading.published,
        )

    make.__name__ = make.__qualname__ = reading.name.replace("-", "_")
    make.__doc__ = reading.purpose
    return make


_LANGUAGES: Final = multilingual().evaluation
_BERT, _ROBERTA, _MBERT = "bert-base-uncased", "roberta-base", "bert-base-multilingual-cased"
_READINGS: Final = (
    Reading(
        "tiny-avg", "The embedded BERT as it is on a laptop, mean of its last layer; seconds.", "embedded:bert-mini",
        ("BERT avg.", "Unigram-TFIDF"), evaluation=EMBEDDED_STSB,
    ),
    Reading(
        "tiny-cls", "The embedded BERT as it is on a laptop, [CLS] of its last layer; seconds.", "embedded:bert-mini",
        ("BERT [CLS]",), "cls", evaluation=EMBEDDED_STSB,
    ),
    Reading(
        "tiny-second-to-last", "The embedded BERT as it is on a laptop, mean of its layer before the last; seconds.",
        "embedded:bert-mini", ("BERT avg.",), "second-to-last", evaluation=EMBEDDED_STSB,
    ),
    Reading(
        "tiny-first-last", "The embedded BERT as it is on a laptop, mean of its first and last layer; seconds.",
        "embedded:bert-mini", ("BERT avg.",), "first-last", evaluation=EMBEDDED_STSB,
    ),
    Reading(
        "glove", f"GloVe avg. (Tables 1, 2, 10): mean of word vectors, file {GLOVE} of yours.", GLOVE,
        ("GloVe avg.", "GloVe avg. on AFS", *_TFIDF),
    ),
    Reading("bert-avg", "BERT-base as it is: mean of its last layer.", _BERT, ("mean, BERT-base", "BERT avg.")),
    Reading(
        "bert-cls", "BERT-base as it is: [CLS] of its last layer.", _BERT, ("[CLS], BERT-base", "BERT [CLS]"), "cls",
    ),
    Reading(
        "bert-second-to-last", "BERT avg. (Tables 1, 2, 10): BERT-base, mean of its layer before the last.", _BERT,
        ("BERT avg.", "BERT avg. on AFS", *_TFIDF), "second-to-last",
    ),
    Reading(
        "bert-second-to-last-cls", "BERT [CLS] (Tables 1, 2): BERT-base, [CLS] of its layer before the last.", _BERT,
        ("BERT [CLS]",), "second-to-last-cls",
    ),
    Reading(
        "bert-first-last", "BERT-base as it is: mean of its first and last layer.", _BERT,
        ("first-last avg., BERT-base", "BERT avg."), "first-last",
    ),
    Reading("roberta-avg", "RoBERTa-base as it is: mean of its last layer.", _ROBERTA, ("mean, RoBERTa-base",)),
    Reading("roberta-cls", "RoBERTa-base as it is: <s> of its last layer.", _ROBERTA, ("[CLS], RoBERTa-base",), "cls"),
    Reading(
        "mbert-avg", "mBERT (Table 3): multilingual BERT as it is, mean of its last layer.", _MBERT, ("mBERT",),
        evaluation=_LANGUAGES,
    ),
    Reading(
        "xlmr-avg", "XLM-R (Table 3): XLM-RoBERTa-base as it is, mean of its last layer.", "xlm-roberta-base",
        ("XLM-R",), evaluation=_LANGUAGES,
    ),
    Reading(
        "published-sbert", "SBERT (Tables 1, 2, 10): its authors' checkpoint, softmax on NLI.",
        "bert-base-nli-mean-tokens", ("SBERT", "SBERT on AFS"),
    ),
    Reading(
        "published-sroberta", "SRoBERTa (Table 1): its authors' checkpoint, softmax on NLI.",
        "roberta-base-nli-mean-tokens", ("SRoBERTa",),
    ),
    Reading(
        "published-sbert-stsb", "SBERT-NLI-STSb: its authors' checkpoint, tuned on STS-B after NLI.",
        "bert-base-nli-stsb-mean-tokens", ("SBERT",),
    ),
    Reading(
        "published-sroberta-stsb", "SRoBERTa-NLI-STSb: its authors' checkpoint, tuned on STS-B after NLI.",
        "roberta-base-nli-stsb-mean-tokens", ("SRoBERTa",),
    ),
    Reading(
        "published-simcse", "SimCSE without labels: its authors' checkpoint, [CLS] before the pooler.",
        "unsup-simcse-bert-base-uncased", ("SimCSE, BERT-base",), "cls",
    ),
    Reading(
        "published-simcse-roberta", "SimCSE without labels, RoBERTa: its authors' checkpoint, <s> before the pooler.",
        "unsup-simcse-roberta-base", ("SimCSE, RoBERTa-base",), "cls",
    ),
    Reading(
        "published-simcse-sup", "SimCSE on NLI: its authors' checkpoint, [CLS] behind its pooler.",
        "sup-simcse-bert-base-uncased", ("SimCSE, supervised, BERT-base",), "cls-pooler",
    ),
    Reading(
        "published-simcse-sup-roberta", "SimCSE on NLI, RoBERTa: its authors' checkpoint, <s> behind its pooler.",
        "sup-simcse-roberta-base", ("SimCSE, supervised, RoBERTa-base",), "cls-pooler",
    ),
    Reading(
        "published-labse", "LaBSE (Table 3): its authors' checkpoint.", "LaBSE", ("LaBSE",), "cls", normalize=True,
        evaluation=_LANGUAGES,
    ),
    Reading(
        "published-xlmr-distilled", "XLM-R taught by SBERT-nli-stsb (Table 3): its authors' checkpoint.",
        "stsb-xlm-r-multilingual", ("XLM-R ← SBERT-nli-stsb",), evaluation=_LANGUAGES,
    ),
    Reading(
        "published-mpnet-multilingual", "A multilingual MPNet taught on paraphrases: its authors' checkpoint.",
        "paraphrase-multilingual-mpnet-base-v2", ("paraphrase-multilingual-mpnet-base-v2",), evaluation=_LANGUAGES,
    ),
)  # fmt: skip

UNTRAINED: Final[tuple[Callable[[], PipelineConfig], ...]] = tuple(map(_recipe, _READINGS))
