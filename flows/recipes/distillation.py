"""Recipes of students that learn from a larger encoder of the same language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flows.recipes.encoders import ENCODERS
from flows.recipes.paper import nli
from flows.recipes.shared import ALONE, beside_original, round_trips
from flows.recipes.tiny import whole_sample
from models.augmentation.config import AugmentConfig
from models.encoder.config import EncoderConfig
from models.objectives.config import DistilConfig
from models.training.config import congen_config, distil_config
from models.translation.catalog import OPUS_MT
from models.translation.filters import UNFILTERED

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

_LENGTH: Final = {"max_length": 128}  # tokens, as ConGen reads them


def distil() -> PipelineConfig:
    """ConGen-BERT-base: SimCSE-RoBERTa-large teaches BERT-base, over sentences and their round trips through German.

    Deviation: sentences of the queue stay among those learnt from, and the second view has a loss of its own, which the
    released code computes from the first.
    """
    return nli().model_copy(
        update={
            "title": "distil: SimCSE-RoBERTa-large teaches BERT-base on SNLI and MultiNLI",
            "augment": AugmentConfig(translations=round_trips(OPUS_MT)[:1], filters=UNFILTERED),
            "pairs": beside_original("bt-de"),
            "encoder": ENCODERS["bert-base-uncased"].config.model_copy(update=_LENGTH),
            "teacher": ENCODERS["unsup-simcse-roberta-large"].config.model_copy(update={"pooling": "cls", **_LENGTH}),
            "training": congen_config(),
            "published": ("BSL-BERT", "BERT avg."),
        }
    )


def distil_minilm() -> PipelineConfig:
    """ConGen-MiniLM-L6: as `distil`, to a student of 22 million parameters."""
    base = distil()
    return base.model_copy(
        update={
            "title": "distil-minilm: SimCSE-RoBERTa-large teaches MiniLM-L6 on SNLI and MultiNLI",
            "encoder": ENCODERS["MiniLM-L6-H384-uncased"].config.model_copy(update=_LENGTH),
            "training": congen_config().model_copy(update={"lr": 3e-4}),
        }
    )


def tiny_distil() -> PipelineConfig:
    """A student on a laptop: the embedded sentence encoder teaches the embedded masked LM; minutes.

    Another teacher: `--set teacher.model=<folder, Hub id, embedded: name or checkpoint/key>`.
    """
    return whole_sample().model_copy(
        update={
            "title": "tiny-distil: a sentence encoder teaches a masked LM on the embedded NLI sample",
            "augment": AugmentConfig(),
            "pairs": ALONE,
            "encoder": EncoderConfig(model="embedded:bert-mini"),
            "teacher": EncoderConfig(model="embedded:mini-sentence"),
            "training": distil_config().model_copy(
                update={
                    "objective": DistilConfig(vectors_weight=5.0, distance="cosine", views="first"),
                    "epochs": 2,
                    "select": "best-or-start",
                }
            ),
        }
    )


DISTILLATION: Final[tuple[Callable[[], PipelineConfig], ...]] = (distil, distil_minilm, tiny_distil)
