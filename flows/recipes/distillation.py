"""Distillation recipes: students of a larger encoder, or of an English encoder (Table 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.flows.recipes.paper import multilingual, multilingual_sup, nli
from bsl.flows.recipes.shared import ACROSS, ALONE, ENCODERS, beside_original, trips_of, with_fields
from bsl.flows.recipes.supervised import sbert_nli_stsb
from bsl.flows.recipes.tiny import TRAINING, tiny_multilingual, whole_sample
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.translation.config import OPUS_MT
from bsl.models.views.config import AugmentConfig
from bsl.models.views.pairs import PairConfig

if TYPE_CHECKING:
    from bsl.flows.config import PipelineConfig

_LENGTH: Final = {"max_length": 128}  # tokens, as in ConGen and multilingual distillation

_CONGEN: Final = TrainingConfig(
    objective=DistilConfig(queue=65_536, student_temperature=0.07, activation="tanh", projection_start="random"),
    lr=5e-5,
    batch_size=128,
    epochs=20,
    drop_last=False,
    precision="fp32",
    eval_every=512,
)
"""Settings of ConGen's README and main.py, in fp32."""

_SMALL_STUDENT: Final = TrainingConfig(objective=DistilConfig(), lr=1e-3, batch_size=128, eval_every=50)
"""Settings for training a small student on a laptop."""


def distil() -> PipelineConfig:
    """ConGen-BERT-base: SimCSE-RoBERTa-large teaches BERT-base, over sentences and their round trips through German.

    Deviation: sentences of the queue are also trained on, and the second view has its own loss; the released code
    computes that loss from the first view. fp32, Adam's bias correction, and the best evaluation instead of early
    stopping after 7 evaluations without improvement.
    """
    return with_fields(
        nli(),
        title="distil: SimCSE-RoBERTa-large teaches BERT-base on SNLI and MultiNLI",
        augment=AugmentConfig(translations=trips_of("en", OPUS_MT)[:1], filters=()),
        pairs=beside_original("bt-de"),
        encoder=with_fields(ENCODERS["bert-base-uncased"], **_LENGTH),
        teacher=with_fields(ENCODERS["unsup-simcse-roberta-large"], pooling="cls", **_LENGTH),
        training=_CONGEN,
        published=("BSL-BERT", "BERT avg."),
    )


def distil_minilm() -> PipelineConfig:
    """ConGen-MiniLM-L6: as `distil`, to a student of 22 million parameters."""
    return with_fields(
        distil(),
        title="distil-minilm: SimCSE-RoBERTa-large teaches MiniLM-L6 on SNLI and MultiNLI",
        encoder=with_fields(ENCODERS["MiniLM-L6-H384-uncased"], **_LENGTH),
        training=with_fields(_CONGEN, lr=3e-4),
    )


def tiny_distil() -> PipelineConfig:
    """A student on a laptop: the embedded sentence encoder teaches the embedded masked LM; minutes.

    `--set teacher.model=<folder, Hub id, embedded: name or checkpoint/key>` sets another teacher.
    """
    return with_fields(
        whole_sample(),
        title="tiny-distil: a sentence encoder teaches a masked LM on the embedded NLI sample",
        augment=AugmentConfig(),
        pairs=ALONE,
        encoder=EncoderConfig(model="embedded:bert-mini"),
        teacher=EncoderConfig(model="embedded:mini-sentence"),
        training=with_fields(
            _SMALL_STUDENT,
            objective=DistilConfig(vectors_weight=5.0, distance="cosine", views="first"),
            epochs=2,
            select="best-or-start",
        ),
    )


DISTILLATION: Final = (distil, distil_minilm, tiny_distil)


def mbert_sbert() -> PipelineConfig:
    """MBERT ← SBERT-nli-stsb (Table 3): mBERT learns SBERT's vectors of English sentences, and of five translations.

    Settings are those of make_multilingual.py, whose 10,000 steps of warm-up are about a tenth of an epoch here; our
    two epochs read about as many pairs as its five. Deviation: trained on machine translations of SNLI and MultiNLI;
    the row used parallel corpora. Adam's bias correction.
    """
    return with_fields(
        multilingual(),
        title="mbert-sbert: SBERT-nli-stsb teaches mBERT six languages",
        encoder=with_fields(ENCODERS["bert-base-multilingual-cased"], **_LENGTH),
        teacher=ENCODERS["bert-base-nli-stsb-mean-tokens"],
        training=TrainingConfig(
            objective=DistilConfig(loss="vectors"), lr=2e-5, epochs=2, drop_last=False, warmup=0.05, precision="fp32"
        ),
        published=("mBERT ← SBERT-nli-stsb", "mBERT", "BSL-uns"),
    )


def xlmr_sbert() -> PipelineConfig:
    """XLM-R ← SBERT-nli-stsb (Table 3): as `mbert-sbert`, from XLM-R."""
    return with_fields(
        mbert_sbert(),
        title="xlmr-sbert: SBERT-nli-stsb teaches XLM-R six languages",
        encoder=with_fields(ENCODERS["xlm-roberta-base"], **_LENGTH),
        published=("XLM-R ← SBERT-nli-stsb", "XLM-R", "BSL-sup"),
    )


def xlmr_sbert_bsl() -> PipelineConfig:
    """BSL-sup (Table 3) from the student of `xlmr-sbert`: its training, then that of `multilingual`."""
    student = xlmr_sbert()
    return with_fields(
        multilingual_sup(),
        title="xlmr-sbert-bsl: SBERT-nli-stsb teaches XLM-R six languages, then BSL-sup",
        encoder=student.encoder,
        earlier=student.phases,
    )


def mbert_nli_stsb() -> PipelineConfig:
    """MBERT-nli-stsb (Table 3): the English training of `sbert-nli-stsb`, from mBERT."""
    return _in_english("bert-base-multilingual-cased", "mbert-nli-stsb: mBERT", ("mBERT-nli-stsb", "mBERT"))


def xlmr_nli_stsb() -> PipelineConfig:
    """XLM-R-nli-stsb (Table 3): as `mbert-nli-stsb`, from XLM-R."""
    return _in_english("xlm-roberta-base", "xlmr-nli-stsb: XLM-R", ("XLM-R-nli-stsb", "XLM-R"))


def tiny_multilingual_distil() -> PipelineConfig:
    """`mbert-sbert` on a laptop: the embedded sentence encoder teaches the embedded encoder of six languages; minutes.

    Deviation: cosine loss instead of mean squared error, because the teacher's vectors have length 1.
    """
    return with_fields(
        tiny_multilingual(),
        title="tiny-multilingual-distil: an English encoder teaches six languages on the embedded NLI sample",
        pairs=PairConfig(pairings=ACROSS),
        teacher=EncoderConfig(model="embedded:mini-sentence"),
        training=with_fields(
            _SMALL_STUDENT,
            objective=DistilConfig(loss="vectors", distance="cosine"),
            max_steps=250,
            select="best-or-start",
        ),
    )


def tiny_multilingual_sup() -> PipelineConfig:
    """`xlmr-sbert-bsl` on a laptop: `tiny-multilingual-distil`, then the training of `tiny-multilingual`; minutes."""
    student, base = tiny_multilingual_distil(), tiny_multilingual()
    return with_fields(
        base,
        title="tiny-multilingual-sup: an English encoder teaches six languages, then BSL + in-batch negatives",
        earlier=student.phases,
        training=with_fields(TRAINING, lr=1e-4, max_steps=100, eval_every=20),
    )


def _in_english(encoder: str, title: str, published: tuple[str, ...]) -> PipelineConfig:
    """Return the recipe of a row trained on English labels only and scored on all tracks."""
    return with_fields(
        sbert_nli_stsb(),
        title=f"{title} on labels of NLI, then on scores of STS-B",
        encoder=with_fields(ENCODERS[encoder], **_LENGTH),
        evaluation=multilingual().evaluation,
        published=published,
    )


MULTILINGUAL: Final = (
    mbert_sbert, xlmr_sbert, xlmr_sbert_bsl, mbert_nli_stsb, xlmr_nli_stsb,
    tiny_multilingual_distil, tiny_multilingual_sup,
)  # fmt: skip
