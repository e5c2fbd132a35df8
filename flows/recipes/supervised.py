"""Supervised recipes: SBERT, supervised contrastive learning, STS-B regression; and BSL after them."""

from __future__ import annotations

from typing import Final

from bsl.flows.config import PipelineConfig
from bsl.flows.recipes.paper import nli, sbert, sroberta
from bsl.flows.recipes.shared import ALONE, ENCODERS, NO_VIEWS, as_printed, with_fields
from bsl.flows.recipes.tiny import tiny_entail
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.supervised_config import CrossSoftmaxConfig, RegressionConfig, SCLConfig, SoftmaxConfig
from bsl.models.training.config import STSB_CONFIG, TrainingConfig
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig

LABELLED: Final = with_fields(ALONE, labelled=True)
_STSB: Final = as_printed("stsb/dev", "stsb/test")
_SENTENCE_BERT: Final = {"max_length": 128}  # as in the published checkpoints

_NLI: Final = TrainingConfig(
    objective=SoftmaxConfig(), lr=2e-5, batch_size=16, drop_last=False, precision="fp32", collapse=None
)
"""SBERT on NLI (its section 3.1): softmax, batch 16, Adam 2e-5, linear warm-up over 10 % of the steps, 1 epoch."""

_SCL_SCALE: Final = 0.216
"""Ratio of dot products in SCL's code to those of means over real tokens: (n_u − 1)(n_v − 1) / ((N_u − 1)(N_v − 1)),
for sentences of n tokens in batches of 64 padded to N, over 19,200 pairs of SNLI in the file's order."""

_SCL: Final = TrainingConfig(
    objective=SCLConfig(),
    lr=2e-5,
    weight_decay=0.0,
    batch_size=64,
    drop_last=False,
    order="given",
    precision="fp32",
    select="last",
    clip=1e9,
    collapse=None,
)
"""Supervised contrastive learning as published (its section 4.2; its bert_sent_embed.py where the paper is silent).

Batch 64, Adam 2e-5, linear decay after warm-up, 1 epoch, all rows of a premise in one batch.
"""


def sbert_nli() -> PipelineConfig:
    """SBERT trained here (Tables 1 and 2): softmax on (u, v, |u − v|) over SNLI and MultiNLI, BERT-base."""
    return with_fields(
        nli(),
        title="sbert-nli: SBERT on the labels of SNLI and MultiNLI",
        augment=NO_VIEWS,
        pairs=LABELLED,
        encoder=with_fields(ENCODERS["bert-base-uncased"], **_SENTENCE_BERT),
        training=_NLI,
        published=("SBERT", "BERT avg."),
    )


def sroberta_nli() -> PipelineConfig:
    """SRoBERTa trained here (Tables 1 and 2): as `sbert-nli`, from RoBERTa-base."""
    return with_fields(
        sbert_nli(),
        title="sroberta-nli: SRoBERTa on the labels of SNLI and MultiNLI",
        encoder=with_fields(ENCODERS["roberta-base"], **_SENTENCE_BERT),
        published=("SRoBERTa", "SBERT"),
    )


def bsl_sbert_nli() -> PipelineConfig:
    """BSL-SBERT from the SBERT of `sbert-nli` (Tables 1 and 2): softmax on labels, then BSL on entailed pairs."""
    return _after(sbert_nli(), sbert(), "bsl-sbert-nli: SBERT, then BSL on entailed pairs")


def bsl_sroberta_nli() -> PipelineConfig:
    """BSL-SRoBERTa from the SRoBERTa of `sroberta-nli` (Tables 1 and 2): as `bsl-sbert-nli`, from RoBERTa-base."""
    return _after(sroberta_nli(), sroberta(), "bsl-sroberta-nli: SRoBERTa, then BSL on entailed pairs")


def bert_nli() -> PipelineConfig:
    """A cross-encoder on NLI labels, from which row BERT-NLI-STSb starts (SBERT, Table 2), BERT-base.

    To measure the row: `bsl evaluate report/<key> --suite stsb-cross-encoder`. The report scores [CLS] vectors of
    single sentences, which the training does not optimise.
    """
    base = sbert_nli()
    return with_fields(
        base,
        title="bert-nli: a cross-encoder on the labels of SNLI and MultiNLI",
        encoder=with_fields(base.encoder, pooling="cls"),
        training=with_fields(_NLI, objective=CrossSoftmaxConfig(), select="last"),
        evaluation=_STSB,
        published=("BERT-STSb",),
    )


def sbert_stsb() -> PipelineConfig:
    """SBERT-STSb (SBERT, Table 2): regression of the cosine on STS-B's scores, BERT-base, one seed.

    The mean over ten seeds, as printed: `bsl evaluate <BERT-base> --suite stsb-supervised`.
    """
    return PipelineConfig(
        title="sbert-stsb: SBERT on the scores of STS-B",
        ingest=IngestConfig(sources=(SourceSpec(dataset="stsb", split="train"),)),
        augment=NO_VIEWS,
        pairs=with_fields(ALONE, scored="stsb/train"),
        encoder=with_fields(ENCODERS["bert-base-uncased"], **_SENTENCE_BERT),
        training=STSB_CONFIG,
        evaluation=_STSB,
        published=("SBERT-STSb", "BERT-STSb"),
    )


def sbert_nli_stsb() -> PipelineConfig:
    """SBERT-NLI-STSb (SBERT, Table 2): `sbert-nli`, then the regression of `sbert-stsb`, one seed.

    The mean over ten seeds, as printed: `bsl evaluate report/<key of sbert-nli> --suite stsb-supervised`.
    """
    first = sbert_nli()
    return with_fields(
        sbert_stsb(),
        title="sbert-nli-stsb: SBERT on labels of NLI, then on scores of STS-B",
        ingest=first.ingest,
        earlier=first.phases,
        published=("SBERT-NLI-STSb", "SBERT-STSb"),
    )


def scl() -> PipelineConfig:
    """Supervised contrastive learning (SCL, Table 2, best row): λ 0.3, all positives and negatives, SNLI, 8-layer BERT.

    For other rows of SCL's tables, set `training.objective.weight`, `.temperature`, `.positives` and `.negatives`.
    """
    return with_fields(
        nli(),
        title="scl: supervised contrastive learning on SNLI",
        ingest=IngestConfig(sources=(SourceSpec(dataset="snli", split="train"),)),
        augment=NO_VIEWS,
        pairs=with_fields(LABELLED, shuffle_seed=None),
        encoder=with_fields(ENCODERS["bert_uncased_L-8_H-512_A-8"], pooling="mean-after-first", max_length=128),
        training=_SCL,
        published=("allpalln-lambda0.3-SCL", "SBERT baseline (SCL)"),
    )


def scl_released() -> PipelineConfig:
    """SCL as its code trains it: as `scl`, with a constant rate after warm-up, and the temperature of its padded mean.

    The code divides a sentence's summed token vectors by the length of the batch's longest sentence. That scales the
    dot products by 0.216 on average; the temperature compensates for it.
    """
    objective = SCLConfig(temperature=round(1 / _SCL_SCALE, 2))
    return with_fields(
        scl(),
        title="scl-released: SCL as its code was released",
        training=with_fields(_SCL, objective=objective, decay="constant"),
    )


def scl_transfer() -> PipelineConfig:
    """SCL's best row on SentEval (SCL, Table 3): as `scl`, λ 0.1."""
    return _variant("scl-transfer: SCL, λ 0.1", SCLConfig(weight=0.1), "allpalln-lambda0.1-SCL")


def scl_3p3n() -> PipelineConfig:
    """SCL with three positives and three negatives per anchor (SCL, Tables 2 and 3): as `scl`, λ 0.5."""
    few = SCLConfig(weight=0.5, positives=3, negatives=3)
    return _variant("scl-3p3n: SCL, three positives and negatives", few, "3p3n-lambda0.5-SCL")


def scl_baseline() -> PipelineConfig:
    """SCL's SBERT baseline (SCL, Tables 2 and 3): as `scl`, only cross-entropy."""
    return _variant("scl-baseline: SCL's SBERT", SoftmaxConfig(head="two-layer"), "SBERT baseline (SCL)")


def scl_augment() -> PipelineConfig:
    """SCL's control (SCL, Tables 2 and 3): as `scl`, positives and negatives are extra pairs for the classifier."""
    return _variant("scl-augment: SCL's control", SCLConfig(control="augment"), "allpalln-Augment")


def scl_augment_3p3n() -> PipelineConfig:
    """SCL's control with three positives and three negatives per anchor (SCL, Tables 2 and 3): as `scl-augment`."""
    few = SCLConfig(control="augment", positives=3, negatives=3)
    return _variant("scl-augment-3p3n: SCL's control, three of each", few, "3p3n-Augment")


def tiny_sbert() -> PipelineConfig:
    """`sbert-nli` on a laptop: the labels of the embedded NLI sample; minutes."""
    return with_fields(
        tiny_entail(),
        title="tiny-sbert: SBERT on the labels of the embedded NLI sample",
        augment=NO_VIEWS,
        pairs=LABELLED,
        encoder=EncoderConfig(model="embedded:bert-mini"),
        training=TrainingConfig(objective=SoftmaxConfig(), lr=1e-4, max_steps=150, eval_every=30),
        published=("SBERT", "BERT avg."),
    )


def tiny_scl() -> PipelineConfig:
    """`scl` on a laptop: the labels of the embedded NLI sample, rows of a premise in one batch; minutes.

    Deviation: cosines and a temperature of 0.05, because the dot products of `bert-mini` have another scale.
    """
    objective = SCLConfig(similarity="cosine", temperature=0.05)
    return with_fields(
        tiny_sbert(),
        title="tiny-scl: supervised contrastive learning on the embedded NLI sample",
        encoder=EncoderConfig(model="embedded:bert-mini", pooling="mean-after-first"),
        training=TrainingConfig(objective=objective, lr=3e-4, max_steps=60, eval_every=20, order="groups"),
        published=("allpalln-lambda0.3-SCL", "SBERT baseline (SCL)"),
    )


def tiny_bsl_sbert() -> PipelineConfig:
    """`bsl-sbert-nli` on a laptop: `tiny-sbert`, then the training of `tiny-entail`; minutes."""
    base = _after(tiny_sbert(), tiny_entail(), "tiny-bsl-sbert: SBERT, then BSL, on the embedded NLI sample")
    return with_fields(base, published=("BSL-SBERT", "SBERT"))


def tiny_stsb() -> PipelineConfig:
    """`sbert-stsb` on a laptop: the scores of the embedded STS-B; minutes."""
    return with_fields(
        tiny_sbert(),
        title="tiny-stsb: SBERT on the scores of the embedded STS-B",
        ingest=IngestConfig(sources=(SourceSpec(dataset="embedded:stsb", split="train"),)),
        pairs=with_fields(ALONE, scored="embedded:stsb/train"),
        training=TrainingConfig(objective=RegressionConfig(), lr=3e-4, max_steps=100, eval_every=25),
        published=("SBERT-STSb", "BERT avg."),
    )


def _after(first: PipelineConfig, second: PipelineConfig, title: str) -> PipelineConfig:
    """Return a recipe that runs the training of `first`, then that of `second`, from the encoder of `first`."""
    return with_fields(second, title=title, encoder=first.encoder, earlier=(*first.phases, *second.earlier))


def _variant(title: str, objective: SCLConfig | SoftmaxConfig, row: str) -> PipelineConfig:
    training = with_fields(_SCL, objective=objective)
    return with_fields(scl(), title=title, training=training, published=(row, "allpalln-lambda0.3-SCL"))


SUPERVISED: Final = (
    sbert_nli, sroberta_nli, bsl_sbert_nli, bsl_sroberta_nli, bert_nli, sbert_stsb, sbert_nli_stsb,
    scl, scl_released, scl_transfer, scl_3p3n, scl_baseline, scl_augment, scl_augment_3p3n,
    tiny_sbert, tiny_scl, tiny_bsl_sbert, tiny_stsb,
)  # fmt: skip
