"""Recipes without training: bare transformers with several poolings, and published checkpoints.

`_recipe` makes the recipe functions. The TF-IDF column of their reports is fitted on the training corpus of the other
recipes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.flows.config import PipelineConfig
from bsl.flows.recipes.paper import multilingual
from bsl.flows.recipes.shared import ALONE, EMBEDDED_STSB, ENCODERS, NLI, NO_VIEWS, SAMPLE, as_printed, with_fields
from bsl.models.encoder.config import EncoderConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsl.models.evaluation.config import EvaluationConfig

GLOVE: Final = "glove.840B.300d.txt"
_SIMCSE_LENGTH: Final = 512  # its code scores without a limit (evaluation.py); 512 is that of the models
_TFIDF: Final = ("Unigram-TFIDF", "Unigram-TFIDF on AFS")
_ENGLISH: Final = as_printed("stsb/dev", "sts", "senteval", "afs")


def _recipe(
    name: str,
    purpose: str,
    model: str,
    published: tuple[str, ...],
    pooling: str | None = None,
    *,
    max_length: int | None = None,
    evaluation: EvaluationConfig = _ENGLISH,
) -> Callable[[], PipelineConfig]:
    """Return the recipe function of an encoder, as `bsl recipes` lists it with its purpose.

    `model` is a key of `ENCODERS`, an embedded model or a file of word vectors; without a pooling it has that of its
    folder, or `mean`; without a length that of its folder, or 64.
    """

    def make() -> PipelineConfig:
        base = ENCODERS.get(model) or EncoderConfig(model=model)
        # Fields that are not given are the folder's.
        given = {name: value for name, value in (("pooling", pooling), ("max_length", max_length)) if value}
        return PipelineConfig(
            title=f"{name}: {purpose.removesuffix('.')}",
            ingest=SAMPLE if evaluation == EMBEDDED_STSB else NLI,
            augment=NO_VIEWS,
            pairs=ALONE,
            encoder=with_fields(base, **given),
            training=None,
            evaluation=evaluation,
            published=published,
        )

    make.__name__ = make.__qualname__ = name.replace("-", "_")
    make.__doc__ = purpose
    return make


_LANGUAGES: Final = multilingual().evaluation
_BERT, _ROBERTA, _MBERT = "bert-base-uncased", "roberta-base", "bert-base-multilingual-cased"
UNTRAINED: Final[tuple[Callable[[], PipelineConfig], ...]] = (
    _recipe(
        "tiny-avg", "The embedded BERT, unchanged, on a laptop: mean of its last layer; seconds.", "embedded:bert-mini",
        ("BERT avg.", "Unigram-TFIDF"), evaluation=EMBEDDED_STSB,
    ),
    _recipe(
        "tiny-cls", "The embedded BERT, unchanged, on a laptop: [CLS] of its last layer; seconds.",
        "embedded:bert-mini", ("BERT [CLS]",), "cls", evaluation=EMBEDDED_STSB,
    ),
    _recipe(
        "tiny-second-to-last", "The embedded BERT, unchanged, on a laptop: mean of its second-to-last layer; seconds.",
        "embedded:bert-mini", ("BERT avg.",), "second-to-last", evaluation=EMBEDDED_STSB,
    ),
    _recipe(
        "tiny-first-last", "The embedded BERT, unchanged, on a laptop: mean of its first and last layer; seconds.",
        "embedded:bert-mini", ("BERT avg.",), "first-last", evaluation=EMBEDDED_STSB,
    ),
    _recipe(
        "glove", f"GloVe avg. (Tables 1, 2, 10): mean of word vectors; your file {GLOVE}.", GLOVE,
        ("GloVe avg.", "GloVe avg. on AFS", *_TFIDF),
    ),
    _recipe("bert-avg", "BERT-base, unchanged: mean of its last layer.", _BERT, ("mean, BERT-base", "BERT avg.")),
    _recipe(
        "bert-cls", "BERT-base, unchanged: [CLS] of its last layer.", _BERT, ("[CLS], BERT-base", "BERT [CLS]"), "cls",
    ),
    _recipe(
        "bert-second-to-last", "BERT avg. (Tables 1, 2, 10): BERT-base, mean of its second-to-last layer.", _BERT,
        ("BERT avg.", "BERT avg. on AFS", *_TFIDF), "second-to-last",
    ),
    _recipe(
        "bert-second-to-last-cls", "BERT [CLS] (Tables 1, 2): BERT-base, [CLS] of its second-to-last layer.", _BERT,
        ("BERT [CLS]",), "second-to-last-cls",
    ),
    _recipe(
        "bert-first-last", "BERT-base, unchanged: mean of its first and last layer.", _BERT,
        ("BERT avg.",), "first-last",
    ),
    _recipe("roberta-avg", "RoBERTa-base, unchanged: mean of its last layer.", _ROBERTA, ("mean, RoBERTa-base",)),
    _recipe(
        "roberta-cls", "RoBERTa-base, unchanged: <s> of its last layer.", _ROBERTA, ("[CLS], RoBERTa-base",), "cls",
    ),
    _recipe(
        "mbert-avg", "mBERT (Table 3): multilingual BERT, unchanged, mean of its last layer.", _MBERT, ("mBERT",),
        evaluation=_LANGUAGES,
    ),
    _recipe(
        "xlmr-avg", "XLM-R (Table 3): XLM-RoBERTa-base, unchanged, mean of its last layer.", "xlm-roberta-base",
        ("XLM-R",), evaluation=_LANGUAGES,
    ),
    _recipe(
        "published-sbert", "SBERT (Tables 1, 2, 10): its authors' checkpoint, softmax on NLI.",
        "bert-base-nli-mean-tokens", ("SBERT", "SBERT on AFS"),
    ),
    _recipe(
        "published-sroberta", "SRoBERTa (Table 1): its authors' checkpoint, softmax on NLI.",
        "roberta-base-nli-mean-tokens", ("SRoBERTa",),
    ),
    _recipe(
        "published-sbert-stsb", "SBERT-NLI-STSb: its authors' checkpoint, tuned on STS-B after NLI.",
        "bert-base-nli-stsb-mean-tokens", ("SBERT",),
    ),
    _recipe(
        "published-sroberta-stsb", "SRoBERTa-NLI-STSb: its authors' checkpoint, tuned on STS-B after NLI.",
        "roberta-base-nli-stsb-mean-tokens", ("SRoBERTa",),
    ),
    _recipe(
        "published-simcse", "SimCSE without labels: its authors' checkpoint, [CLS] before the pooler.",
        "unsup-simcse-bert-base-uncased", ("SimCSE, BERT-base",), "cls", max_length=_SIMCSE_LENGTH,
    ),
    _recipe(
        "published-simcse-roberta", "SimCSE without labels, RoBERTa: its authors' checkpoint, <s> before the pooler.",
        "unsup-simcse-roberta-base", ("SimCSE, RoBERTa-base",), "cls", max_length=_SIMCSE_LENGTH,
    ),
    _recipe(
        "published-simcse-sup", "SimCSE on NLI: its authors' checkpoint, [CLS] after its pooler.",
        "sup-simcse-bert-base-uncased", ("SimCSE, supervised, BERT-base",), "cls-pooler", max_length=_SIMCSE_LENGTH,
    ),
    _recipe(
        "published-simcse-sup-roberta", "SimCSE on NLI, RoBERTa: its authors' checkpoint, <s> after its pooler.",
        "sup-simcse-roberta-base", ("SimCSE, supervised, RoBERTa-base",), "cls-pooler", max_length=_SIMCSE_LENGTH,
    ),
    _recipe(
        "published-labse", "LaBSE (Table 3): its authors' checkpoint.", "LaBSE", ("LaBSE",), "cls",
        evaluation=_LANGUAGES,
    ),
    _recipe(
        "published-xlmr-distilled", "XLM-R distilled from SBERT-nli-stsb (Table 3): its authors' checkpoint.",
        "stsb-xlm-r-multilingual", ("XLM-R ← SBERT-nli-stsb",), evaluation=_LANGUAGES,
    ),
    _recipe(
        "published-mpnet-multilingual", "A multilingual MPNet trained on paraphrases: its authors' checkpoint.",
        "paraphrase-multilingual-mpnet-base-v2", ("paraphrase-multilingual-mpnet-base-v2",), evaluation=_LANGUAGES,
    ),
)  # fmt: skip
