"""Recipes: functions that return a complete configuration, one per published row or use."""

import difflib
from collections.abc import Callable
from typing import Final, Literal, get_args

from flows.config import PipelineConfig
from models.augmentation.config import AugmentConfig, TranslatedView, round_trip
from models.bsl.config import BSLConfig
from models.encoder.config import EncoderConfig
from models.evaluation.config import EvaluationConfig
from models.pairs import PairConfig, ViewPair
from models.text.corpus import CorpusConfig
from models.training.config import TrainingConfig
from models.translation.config import TranslatorConfig
from storage.sources import SourceSpec
from tasks.ingest import IngestConfig
from tasks.suites import SUITES

RecipeName = Literal["tiny", "nli", "nli-roberta", "custom"]


class UnknownRecipeError(ValueError):
    """No recipe has that name."""


def recipe(name: str) -> PipelineConfig:
    """The configuration of a recipe.

    Raises:
        UnknownRecipeError: with the names that exist and the nearest of them.
    """
    if name not in RECIPES:
        nearest = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise UnknownRecipeError(f"no recipe is called {name!r}; there are {', '.join(RECIPES)}.{hint}")
    return RECIPES[name]()


def tiny() -> PipelineConfig:
    """A true run on a laptop: embedded sentences, translators and encoder; no Hub, no GPU, minutes."""
    return PipelineConfig(
        title="tiny: BSL on the embedded NLI sample",
        ingest=IngestConfig(
            sources=(SourceSpec(dataset="embedded:nli-sample"),),
            corpus=CorpusConfig(limit=3000),  # of 5,993, so that all of it takes minutes
        ),
        augment=AugmentConfig(
            views=tuple(_mini_round_trip(*pivot) for pivot in (("de", ">>deu<<"), ("fr", ">>fra<<")))
        ),
        pairs=PairConfig(
            pairings=tuple(
                ViewPair(view_1=one, view_2=two)
                for one, two in (("bt-de", "bt-fr"), ("original", "bt-de"), ("original", "bt-fr"))
            ),
            drop_identical=True,
            subsample=1e-3,
        ),
        encoder=EncoderConfig(model="embedded:bert-mini"),
        # Deviations, with what else was tried in BENCHMARKS.md: so small an encoder and such weak views need them.
        training=TrainingConfig(
            bsl=BSLConfig(contrastive_weight=0.1), optimizer="adamw", lr=1e-3, precision="bf16", eval_every=40
        ),
        evaluation=EvaluationConfig(sets=("embedded:stsb/dev", "embedded:stsb/test"), dev="embedded:stsb/dev"),
        published=("BSL-BERT", "BERT avg."),
    )


def nli() -> PipelineConfig:
    """BSL-BERT (Table 1): the sentences of SNLI and MultiNLI, round trips through German and French, BERT-base."""
    return PipelineConfig(
        title="nli: BSL-BERT on SNLI and MultiNLI",
        ingest=IngestConfig(
            sources=(SourceSpec(dataset="snli", split="train"), SourceSpec(dataset="multi_nli", split="train"))
        ),
        augment=AugmentConfig(views=tuple(_opus_round_trip(pivot) for pivot in ("de", "fr"))),
        pairs=PairConfig(),
        encoder=EncoderConfig(
            model="google-bert/bert-base-uncased", revision="86b5e0934494bd15c9632b12f734a8a67f723594"
        ),
        training=TrainingConfig(),
        evaluation=EvaluationConfig(sets=("stsb/dev", *SUITES["sts"])),
        published=("BSL-BERT", "BERT avg.", "IS-BERT"),
    )


def nli_roberta() -> PipelineConfig:
    """BSL-RoBERTa (Table 1): as `nli`, from RoBERTa-base."""
    return nli().model_copy(
        update={
            "title": "nli-roberta: BSL-RoBERTa on SNLI and MultiNLI",
            "encoder": EncoderConfig(
                model="FacebookAI/roberta-base", revision="e2da8e2f811d1448a5b465c236feacd80ffbac7b"
            ),
            "published": ("BSL-RoBERTa", "SRoBERTa"),
        }
    )


def custom() -> PipelineConfig:
    """Your sentences: as `nli`, with `ingest.sources` set to your files or Hub id and a target that cannot collapse."""
    return nli().model_copy(
        update={
            "title": "custom: BSL on your sentences",
            "ingest": IngestConfig(sources=(SourceSpec(path="sentences.txt"),)),
            "training": TrainingConfig(bsl=BSLConfig(target_norm="standardize")),
        }
    )


RECIPES: Final[dict[str, Callable[[], PipelineConfig]]] = dict(
    zip(get_args(RecipeName), (tiny, nli, nli_roberta, custom), strict=True)
)


def _mini_round_trip(pivot: str, token: str) -> TranslatedView:
    out = TranslatorConfig(model="embedded:marian-mini-en-mul", source_lang="en", target_lang=pivot, target_token=token)
    back = TranslatorConfig(model="embedded:marian-mini-mul-en", source_lang=pivot, target_lang="en")
    return round_trip(out, back)


def _opus_round_trip(pivot: str) -> TranslatedView:
    out, back = (
        TranslatorConfig(
            model=f"Helsinki-NLP/opus-mt-{one}-{two}",
            source_lang=one,
            target_lang=two,
            normalize_punctuation=True,  # as the text that OPUS-MT was trained on
        )
        for one, two in (("en", pivot), (pivot, "en"))
    )
    return round_trip(out, back)
