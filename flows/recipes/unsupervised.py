"""Unsupervised recipes other than BSL: masked LM, TSDAE, SimCSE, contrastive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.flows.recipes.paper import PAPER_TRAINING, afs, nli
from bsl.flows.recipes.shared import ALONE, ENCODERS, NO_VIEWS, with_fields
from bsl.flows.recipes.tiny import TRAINING, whole_sample
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig, TSDAEConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.views.config import ORIGINAL, AugmentConfig, DeletedView
from bsl.models.views.pairs import PairConfig, ViewPair
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig

if TYPE_CHECKING:
    from bsl.flows.config import PipelineConfig
    from bsl.models.objectives.config import AnyObjective

_DAMAGED: Final = AugmentConfig(rewritings=(DeletedView(),), filters=())
_FROM_DAMAGED: Final = PairConfig(pairings=(ViewPair(view_1="deleted", view_2=ORIGINAL),))
_WIKI: Final = SourceSpec(path="wiki1m_for_simcse.txt", name="wiki1m", limit=1_000_000)
_MLM: Final = TrainingConfig(objective=MaskedLMConfig(), lr=5e-5, precision="fp32", select="last", collapse=None)
_TSDAE: Final = TrainingConfig(
    objective=TSDAEConfig(),
    lr=3e-5,
    weight_decay=0.0,
    batch_size=8,
    warmup=0.0,
    decay="constant",
    precision="fp32",
    eval_every=1000,
    collapse=None,
)
_SIMCSE: Final = TrainingConfig(
    objective=SimCSEConfig(),
    lr=3e-5,
    weight_decay=0.0,
    eps=1e-8,
    drop_last=False,
    warmup=0.0,
    precision="fp32",
    eval_every=125,
    collapse=None,
)
_STS: Final = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")


def bert_mlm() -> PipelineConfig:
    """BERT-mlm (Tables 1 and 2): masked language modelling continued on SNLI and MultiNLI, BERT-base, mean.

    The paper states only that it is trained on the same corpora. All settings except the task are those of `nli`; the
    learning rate is the default of transformers. The checkpoint is the last step, because no sentence vector is
    trained, so a dev set of similarities cannot select a step.
    """
    return with_fields(
        nli(),
        title="bert-mlm: masked language modelling continued on SNLI and MultiNLI",
        augment=NO_VIEWS,
        pairs=ALONE,
        training=_MLM,
        published=("BERT-mlm", "BERT avg.", "BSL-BERT"),
    )


def afs_mlm() -> PipelineConfig:
    """BERT-mlm on AFS (Table 10): as `bert-mlm`, on the sentences of the arguments."""
    return with_fields(
        bert_mlm(),
        title="afs-mlm: masked language modelling continued on the sentences of Argument Facet Similarity",
        ingest=afs().ingest,
        evaluation=afs().evaluation,
        published=("BERT-mlm on AFS", "BERT avg. on AFS", "BSL-BERT on AFS"),
    )


def tsdae() -> PipelineConfig:
    """TSDAE (Wang et al., 2021) on SNLI and MultiNLI: sentences are reconstructed from a vector of 40 % of their words.

    [CLS], deletion of 60 %, tied decoder, batches of 8 and a constant rate of 3e-5 are as published. The published
    corpus is a million sentences of Wikipedia: `--set 'ingest.sources=[{"path": "wiki1m_for_simcse.txt"}]'`.
    """
    return with_fields(
        nli(),
        title="tsdae: TSDAE on SNLI and MultiNLI",
        augment=_DAMAGED,
        pairs=_FROM_DAMAGED,
        encoder=with_fields(ENCODERS["bert-base-uncased"], pooling="cls", max_length=75),
        training=_TSDAE,
        published=("BERT [CLS]", "BSL-BERT"),
    )


def simcse() -> PipelineConfig:
    """Unsupervised SimCSE (Gao et al., 2021): a million sentences of Wikipedia twice under dropout, BERT-base, [CLS].

    The sentences are all of wiki1m_for_simcse.txt, from princeton-nlp/datasets-for-simcse, as in SimCSE's code.
    """
    return with_fields(
        nli(),
        title="simcse: unsupervised SimCSE on a million sentences of Wikipedia",
        ingest=IngestConfig(sources=(_WIKI,)),
        augment=NO_VIEWS,
        pairs=ALONE,
        encoder=with_fields(ENCODERS["bert-base-uncased"], pooling="cls", max_length=32),
        training=_SIMCSE,
        published=("SimCSE, BERT-base", "BERT [CLS]", "BSL-BERT"),
    )


def contrastive() -> PipelineConfig:
    """Contrastive (Table 7): the pairs of `nli`, other pairs of the batch as negatives; set `training.batch_size`."""
    return with_fields(
        nli(),
        title=f"contrastive: {ContrastiveConfig.title} on SNLI and MultiNLI",
        training=with_fields(PAPER_TRAINING, objective=ContrastiveConfig()),
        published=("Contrastive, batch 64", "BSL-BERT, batch 64", "BSL-BERT"),
    )


def bsl_sts() -> PipelineConfig:
    """BSL on the sentences of the STS test sets, without their scores, as in BERT-flow's target setting."""
    return with_fields(
        nli(),
        title="bsl-sts: BSL on the sentences of the STS sets",
        ingest=IngestConfig(sources=tuple(SourceSpec(dataset=name, split="test") for name in _STS)),
        published=("BSL-BERT", "BERT avg."),
    )


def tiny_mlm() -> PipelineConfig:
    """`bert-mlm` on a laptop: embedded sentences and encoder; minutes."""
    return _tiny("tiny-mlm: masked language modelling continued", bert_mlm(), _MLM, lr=1e-4, max_steps=200)


def tiny_tsdae() -> PipelineConfig:
    """`tsdae` on a laptop: embedded sentences and encoder, pooled by its mean; minutes."""
    return _tiny("tiny-tsdae: TSDAE", tsdae(), _TSDAE, lr=3e-4, batch_size=64, max_steps=120, eval_every=40)


def tiny_simcse() -> PipelineConfig:
    """`simcse` on a laptop: embedded sentences and encoder, pooled by its mean; minutes."""
    return _tiny("tiny-simcse: unsupervised SimCSE", simcse(), _SIMCSE, lr=3e-4, max_steps=100, eval_every=20)


def tiny_contrastive() -> PipelineConfig:
    """`contrastive` on a laptop: round trips of the embedded sentences; minutes."""
    return _tiny_round_trips("contrastive training", ContrastiveConfig())


def tiny_bsl() -> PipelineConfig:
    """BSL as published, on a laptop: it gets worse, because the embedded encoder's vectors share a direction; minutes.

    The collapse check is off, so that the report shows why `tiny` deviates.
    """
    return _tiny_round_trips("BSL as published", BSLConfig(), collapse=None)


def tiny_bsl_normed() -> PipelineConfig:
    """`tiny-bsl` with a standardised target, which lets it learn without negatives; minutes.

    Only `target_norm` deviates; `tiny` uses in-batch negatives instead.
    """
    base = _tiny_round_trips("BSL", BSLConfig(target_norm="standardize"), collapse=None)
    return with_fields(base, title="tiny-bsl-normed: BSL, target standardised, on the embedded NLI sample")


def _tiny(title: str, base: PipelineConfig, training: TrainingConfig, **settings: object) -> PipelineConfig:
    """Return a recipe on the embedded sentences and encoder, with training settings for a small encoder."""
    return with_fields(
        whole_sample(),
        title=f"{title} on the embedded NLI sample",
        augment=base.augment,
        pairs=base.pairs,
        encoder=EncoderConfig(model="embedded:bert-mini", dropout=0.1),
        training=with_fields(training, precision="auto", **settings),
        published=base.published[:1],
    )


def _tiny_round_trips(what: str, objective: AnyObjective, **training: object) -> PipelineConfig:
    title = f"tiny-{objective.name}: {what} on the embedded NLI sample"
    # As published, the original encoder is not a candidate: the report shows the trained encoder even if it is worse.
    settings = with_fields(TRAINING, objective=objective, select="best", **training)
    return with_fields(whole_sample(), title=title, training=settings)


UNSUPERVISED: Final = (
    bert_mlm, afs_mlm, tsdae, simcse, contrastive, bsl_sts,
    tiny_mlm, tiny_tsdae, tiny_simcse, tiny_contrastive, tiny_bsl, tiny_bsl_normed,
)  # fmt: skip
