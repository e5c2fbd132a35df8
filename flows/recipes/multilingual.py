"""Recipes of Table 3: students of several languages that learn from an English encoder, and BSL after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flows.recipes.encoders import ENCODERS
from flows.recipes.paper import multilingual, multilingual_sup
from flows.recipes.shared import ACROSS, ALONE
from flows.recipes.tiny import tiny_multilingual
from models.augmentation.config import AugmentConfig
from models.encoder.config import EncoderConfig
from models.objectives.distil_config import DistilConfig
from models.pairs import PairConfig
from models.training.config import distil_config, multilingual_distil_config
from models.translation.filters import UNFILTERED

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

_LENGTH: Final = {"max_length": 128}  # tokens, as the code of multilingual distillation reads them


def mbert_sbert() -> PipelineConfig:
    """MBERT ← SBERT-nli-stsb (Table 3): mBERT learns SBERT's vectors of English, for English and five translations.

    Deviation: of SNLI and MultiNLI in our own translation; the row learnt from parallel corpora.
    """
    return multilingual().model_copy(
        update={
            "title": "mbert-sbert: SBERT-nli-stsb teaches mBERT six languages",
            "encoder": ENCODERS["bert-base-multilingual-cased"].config.model_copy(update=_LENGTH),
            "teacher": ENCODERS["bert-base-nli-stsb-mean-tokens"].config,
            "training": multilingual_distil_config(),
            "published": ("mBERT ← SBERT-nli-stsb", "mBERT", "BSL-uns"),
        }
    )


def xlmr_sbert() -> PipelineConfig:
    """XLM-R ← SBERT-nli-stsb (Table 3): as `mbert-sbert`, from XLM-R."""
    return mbert_sbert().model_copy(
        update={
            "title": "xlmr-sbert: SBERT-nli-stsb teaches XLM-R six languages",
            "encoder": ENCODERS["xlm-roberta-base"].config.model_copy(update=_LENGTH),
            "published": ("XLM-R ← SBERT-nli-stsb", "XLM-R", "BSL-sup"),
        }
    )


def xlmr_sbert_bsl() -> PipelineConfig:
    """BSL-sup (Table 3) from a student taught here: the training of `xlmr-sbert`, then that of `multilingual`."""
    student = xlmr_sbert()
    return multilingual_sup().model_copy(
        update={
            "title": "xlmr-sbert-bsl: SBERT-nli-stsb teaches XLM-R six languages, then BSL-sup",
            "encoder": student.encoder,
            "earlier": student.phases,
        }
    )


def xlmr_sbert_published() -> PipelineConfig:
    """XLM-R ← SBERT-nli-stsb (Table 3), the published checkpoint as it is."""
    return _as_it_is("stsb-xlm-r-multilingual", "xlmr-sbert-published: the published student", "XLM-R ← SBERT-nli-stsb")


def labse() -> PipelineConfig:
    """LaBSE (Table 3), the published checkpoint as it is.

    mUSE has no folder that opens here: score an object with `encode(list[str])` through Python.
    """
    base = _as_it_is("LaBSE", "labse: LaBSE", "LaBSE")
    pooled = base.encoder.model_copy(update={"pooling": "cls", "normalize": True})
    return base.model_copy(update={"encoder": pooled})


def tiny_multilingual_distil() -> PipelineConfig:
    """`mbert-sbert` on a laptop: the embedded sentence encoder teaches the embedded encoder of six languages; minutes.

    Deviation: cosine for mean squared error, since the teacher's vectors have length 1.
    """
    base = tiny_multilingual()
    return base.model_copy(
        update={
            "title": "tiny-multilingual-distil: an English encoder teaches six languages on the embedded NLI sample",
            "pairs": PairConfig(pairings=ACROSS),
            "teacher": EncoderConfig(model="embedded:mini-sentence"),
            "training": distil_config().model_copy(
                update={"objective": DistilConfig(loss="vectors", distance="cosine"), "max_steps": 250}
            ),
        }
    )


def tiny_multilingual_sup() -> PipelineConfig:
    """`xlmr-sbert-bsl` on a laptop: `tiny-multilingual-distil`, then the training of `tiny-multilingual`; minutes."""
    student, base = tiny_multilingual_distil(), tiny_multilingual()
    assert base.training is not None  # it trains
    return base.model_copy(
        update={
            "title": "tiny-multilingual-sup: an English encoder teaches six languages, then BSL + in-batch negatives",
            "earlier": student.phases,
            "training": base.training.model_copy(update={"lr": 1e-4, "max_steps": 100, "eval_every": 20}),
        }
    )


def _as_it_is(encoder: str, title: str, row: str) -> PipelineConfig:
    return multilingual().model_copy(
        update={
            "title": title,
            "augment": AugmentConfig(filters=UNFILTERED),
            "pairs": ALONE,
            "encoder": ENCODERS[encoder].config,
            "training": None,
            "published": (row, "mUSE"),
        }
    )


MULTILINGUAL: Final[tuple[Callable[[], PipelineConfig], ...]] = (
    mbert_sbert, xlmr_sbert, xlmr_sbert_bsl, xlmr_sbert_published, labse,
    tiny_multilingual_distil, tiny_multilingual_sup,
)  # fmt: skip
