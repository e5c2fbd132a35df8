"""Shared parts of recipes: corpora, sets, views, pairs of views, and pinned encoders.

An encoder is pinned to a commit if a public source names the commit; the other encoders use the newest commit. Artifact
keys contain the digest of the model's files, so two runs with different files have different keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel

from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.config import EvaluationConfig
from bsl.models.objectives.supervised_config import RegressionConfig
from bsl.models.views.config import ORIGINAL, AugmentConfig, EntailView, TranslatedView, round_trip
from bsl.models.views.pairs import PairConfig, ViewPair
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.models.translation.config import TranslatorConfig


ENTAIL: Final = EntailView(hypotheses=4)  # 1 of 22,471 SNLI premises has more
LANGUAGES: Final = ("ar", "es", "tr", "de", "fr")
ACROSS: Final = tuple(ViewPair(view_1=ORIGINAL, view_2=f"mt-{lang}", lang_2=lang) for lang in LANGUAGES)
"""Each English sentence paired with each of its translations."""

PIVOTS: Final = ("de", "fr", "en")
"""Pivot languages of round trips."""

NLI: Final = IngestConfig(
    sources=(SourceSpec(dataset="snli", split="train"), SourceSpec(dataset="multi_nli", split="train"))
)
SAMPLE: Final = IngestConfig(sources=(SourceSpec(dataset="embedded:nli-sample"),))
EMBEDDED_STSB: Final = EvaluationConfig(sets=("embedded:stsb/dev", "embedded:stsb/test"), dev="embedded:stsb/dev")
NO_VIEWS: Final = AugmentConfig(filters=())
"""The sentence is its only view."""

ANCHOR: Final = 3.0
"""Anchor weight of a bare transformer; without an anchor, `bert-mini` loses 0.6 to 2.8 points on STS-B. A sentence
encoder is trained without an anchor, which would cost all-MiniLM-L6-v2 four fifths of its gain."""
LABEL_REGRESSION: Final = RegressionConfig(anchor_weight=0.2, each_text_once=True)
"""Objective of training on labels, which keeps vectors of labelled and of general sentences close to the original."""

CROPS: Final = ViewPair(view_1="crop", view_2="crop-2")
"""Two crops of each sentence (contiguous words)."""

ALONE: Final = PairConfig(pairings=(ViewPair(view_1=ORIGINAL, view_2=ORIGINAL),))
"""Each sentence paired with itself, for objectives that read one view."""


C = TypeVar("C", bound=BaseModel)


def with_fields(config: C, **fields: object) -> C:
    """Return a configuration with other values of some fields.

    Raises:
        ValueError: The configuration has no such field.
    """
    if unknown := fields.keys() - type(config).model_fields:
        raise ValueError(f"{type(config).__name__} has no field {', '.join(sorted(unknown))}")
    return config.model_copy(update=fields)


def as_printed(*sets: str) -> EvaluationConfig:
    """Return the evaluation of a published row: its sets, in fp32 as in its code, for equal figures on all machines."""
    return EvaluationConfig(sets=sets, precision="fp32")


def trips_of(
    lang: str, translators: Mapping[str, TranslatorConfig], pivots: Sequence[str] = PIVOTS
) -> tuple[TranslatedView, ...]:
    """Return back-translations of a language through each pivot with translators in both directions."""
    directions = ((f"{lang}-{pivot}", f"{pivot}-{lang}") for pivot in pivots)
    return tuple(
        round_trip(translators[forward], translators[back])
        for forward, back in directions
        if forward in translators and back in translators
    )


def beside_original(*methods: str) -> PairConfig:
    """Pair the sentence with each view (section 4.4: augmenting only one view works best)."""
    return PairConfig(pairings=tuple(ViewPair(view_1=ORIGINAL, view_2=method) for method in methods))


_PINNED: Final = {  # public code cites these commits
    "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",  # BERT-base, Table 8
    "FacebookAI/roberta-base": "e2da8e2f811d1448a5b465c236feacd80ffbac7b",  # RoBERTa-base, Table 1
    "google-bert/bert-base-multilingual-cased": "3f076fdb1ab68d5b2880cb87a0886f315b8146f8",  # mBERT, section 4.3
    "FacebookAI/xlm-roberta-base": "e73636d4f797dec63c3081bb6ed5c7b0bb3f2089",  # XLM-R, Table 3
    "sentence-transformers/LaBSE": "e34fab64a3011d2176c99545a93d5cbddc9a91b7",  # LaBSE, Table 3
    # In no row of the paper.
    "sentence-transformers/paraphrase-multilingual-mpnet-base-v2": "79f2382ceacceacdf38563d7c5d16b9ff8d725d6",
}
_UNPINNED: Final = (
    "sentence-transformers/bert-base-nli-mean-tokens",  # SBERT by softmax on NLI, Table 1
    "sentence-transformers/roberta-base-nli-mean-tokens",  # SRoBERTa by softmax on NLI, Table 1
    # Multiple negatives on NLI; the authors' code starts from it since 2022 (cfacb3b); in no row.
    "sentence-transformers/nli-roberta-base-v2",
    "google/bert_uncased_L-8_H-512_A-8",  # BERT of 8 layers, width 512 (SCL, section 4.2)
    "sentence-transformers/stsb-xlm-r-multilingual",  # XLM-R distilled from SBERT-nli-stsb
    "sentence-transformers/bert-base-nli-stsb-mean-tokens",  # SBERT tuned on STS-B after NLI
    "sentence-transformers/roberta-base-nli-stsb-mean-tokens",  # SRoBERTa tuned on STS-B after NLI
    "princeton-nlp/unsup-simcse-bert-base-uncased",  # SimCSE without labels
    "princeton-nlp/unsup-simcse-roberta-base",  # SimCSE without labels, RoBERTa
    "princeton-nlp/sup-simcse-bert-base-uncased",  # SimCSE on NLI
    "princeton-nlp/sup-simcse-roberta-base",  # SimCSE on NLI, RoBERTa
    "princeton-nlp/unsup-simcse-roberta-large",  # SimCSE without labels, teacher of ConGen
    "nreimers/MiniLM-L6-H384-uncased",  # MiniLM-L6, student of ConGen
)
NO_COMMIT: Final = "no public source names a commit; set one with `--set encoder.revision=…`"
"""Why an encoder is not pinned."""
ENCODERS: Final[Mapping[str, EncoderConfig]] = {
    model.partition("/")[2]: EncoderConfig(model=model, revision=revision)
    for model, revision in (*_PINNED.items(), *((model, None) for model in _UNPINNED))
}
"""Hub encoders by their id without the owner; mean pooling, default length."""
