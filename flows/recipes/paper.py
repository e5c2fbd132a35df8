"""Recipes of the BSL paper's rows."""

from __future__ import annotations

from typing import Final

from bsl.flows.config import PipelineConfig
from bsl.flows.recipes.shared import (
    ACROSS,
    ENCODERS,
    ENTAIL,
    LANGUAGES,
    NLI,
    as_printed,
    beside_original,
    trips_of,
    with_fields,
)
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.translation.config import OPUS_MT
from bsl.models.views.config import AugmentConfig, GivenView, MaskedView, SynonymView, translation
from bsl.models.views.pairs import PairConfig
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig

_BOOKS: Final = SourceSpec(path="books", name="books", limit=5_000_000)

PAPER_TRAINING: Final = TrainingConfig(precision="fp32")
"""Settings of the paper (section 4 and Table 8), with warm-up, decay and clipping of the released code."""

RELEASED_TRAINING: Final = TrainingConfig(
    objective=BSLConfig(predictor="released", k=10, target_dropout=True, loss_scale="released"),
    optimizer="adamw",
    lr=1e-4,
    weight_decay=0.0,
    precision="fp32",
    eval_every="tenth",
    dev_similarity="best-of-four",
)
"""Settings of the authors' code for unsupervised training (unsupervised_tuning.py, BYOLoss.py), in fp32."""

_SUPERVISED: Final = with_fields(RELEASED_TRAINING, objective=with_fields(RELEASED_TRAINING.objective, momentum=0.9999))
"""Settings of the authors' code for training after supervision, at its release (supervised_tuning.py), in fp32."""


def nli() -> PipelineConfig:
    """BSL-BERT (Tables 1 and 2): SNLI and MultiNLI, round trips through German and French, BERT-base."""
    return PipelineConfig(
        title="nli: BSL-BERT on SNLI and MultiNLI",
        ingest=NLI,
        augment=AugmentConfig(translations=trips_of("en", OPUS_MT), filters=()),
        pairs=PairConfig(),
        encoder=ENCODERS["bert-base-uncased"],
        training=PAPER_TRAINING,
        evaluation=as_printed("stsb/dev", "sts", "senteval"),
        published=("BSL-BERT", "BERT avg.", "IS-BERT-NLI", "IS-BERT-task"),
    )


def nli_released() -> PipelineConfig:
    """BSL-BERT as the authors' code trains it: the pairs of `nli`; three predictors, k 10, lr 1e-4, no weight decay.

    Deviation: fp32 instead of the code's fp16. Before 2021-10-22 the code sent view 2 through the second predictor
    twice: `--set training.objective.predictor=released-2021`.
    """
    return with_fields(nli(), title="nli-released: BSL-BERT as its code was released", training=RELEASED_TRAINING)


def nli_authors_views() -> PipelineConfig:
    """BSL-BERT (Tables 1 and 2) on the authors' pairs of views: two columns of back_translated_nli.txt, BERT-base.

    Deviation: if several lines have the same sentence in column one, only the first line is used.
    """
    return with_fields(
        nli(),
        title="nli-authors-views: BSL-BERT on the authors' pairs of views",
        ingest=IngestConfig(sources=(SourceSpec(dataset="back_translated_nli"),)),
        augment=AugmentConfig(given=(GivenView(),), filters=()),
        pairs=beside_original("given"),
    )


def nli_roberta() -> PipelineConfig:
    """BSL-RoBERTa (Tables 1 and 2): as `nli`, from RoBERTa-base."""
    return with_fields(
        nli(),
        title="nli-roberta: BSL-RoBERTa on SNLI and MultiNLI",
        encoder=ENCODERS["roberta-base"],
        published=("BSL-RoBERTa", "SRoBERTa"),
    )


def entail() -> PipelineConfig:
    """NLI_entail (Table 4): only entailed pairs as the two views, BERT-base; labels of SNLI and MultiNLI."""
    return _variant("entail: BSL on entailed pairs", AugmentConfig(rewritings=(ENTAIL,)), ENTAIL.methods, "NLI_entail")


def nli_entail() -> PipelineConfig:
    """Back-translation + NLI_entail (Table 4): the pairs of `nli` and those of `entail` in one training set."""
    base, entailed = nli(), entail()
    pairings = (*base.pairs.pairings, *entailed.pairs.pairings)
    return with_fields(
        base,
        title="nli-entail: BSL on round trips and entailed pairs",
        augment=with_fields(base.augment, rewritings=(ENTAIL,)),
        pairs=PairConfig(pairings=pairings),
        published=("BSL-BERT, Back-translation + NLI_entail", "BSL-BERT, NLI_entail", "BSL-BERT"),
    )


def synonym() -> PipelineConfig:
    """Synonym (Table 4): the sentence paired with itself with 30 % of its words replaced through WordNet."""
    bare = SynonymView(inflect=False)
    return _variant("synonym: BSL on WordNet synonyms", AugmentConfig(rewritings=(bare,)), bare.methods, "Synonym")


def mlm() -> PipelineConfig:
    """MLM (Table 4): the sentence paired with itself with 20 % of its tokens refilled by RoBERTa-base."""
    return _variant("mlm: BSL on refilled tokens", AugmentConfig(rewritings=(MaskedView(),)), ("mlm",), "MLM")


def books() -> PipelineConfig:
    """5M Book (Table 4): as `nli`, on five million sentences of the files in folder `books`."""
    return with_fields(
        nli(),
        title="books: BSL on five million sentences of books",
        ingest=IngestConfig(sources=(_BOOKS,)),
        published=("BSL-BERT, 5M Book", "BSL-BERT"),
    )


def books_nli() -> PipelineConfig:
    """5M Book + NLI (Table 4): as `nli`, with five million more sentences of the files in folder `books`."""
    base = nli()
    return with_fields(
        base,
        title="books-nli: BSL on sentences of books, SNLI and MultiNLI",
        ingest=IngestConfig(sources=(*base.ingest.sources, _BOOKS)),
        published=("BSL-BERT, 5M Book + NLI", "BSL-BERT, 5M Book", "BSL-BERT"),
    )


def sbert() -> PipelineConfig:
    """BSL-SBERT (Tables 1 and 2): from SBERT (softmax on NLI), trained on entailed pairs.

    Predictor, k and weight decay are from the paper. It states no learning rate and no momentum after supervised
    training (section 4 is about unsupervised runs): both are from the code at its release (supervised_tuning.py).
    """
    return with_fields(
        entail(),
        title="sbert: BSL-SBERT on entailed pairs",
        encoder=ENCODERS["bert-base-nli-mean-tokens"],
        training=with_fields(PAPER_TRAINING, objective=BSLConfig(momentum=0.9999), lr=1e-4),
        published=("BSL-SBERT", "SBERT"),
    )


def sbert_released() -> PipelineConfig:
    """BSL-SBERT as the authors' code trained it at its release: as `sbert`, three predictors, k 10, no weight decay.

    Deviation: fp32 instead of the code's fp16.
    """
    return with_fields(sbert(), title="sbert-released: BSL-SBERT as its code was released", training=_SUPERVISED)


def sroberta() -> PipelineConfig:
    """BSL-SRoBERTa (Tables 1 and 2): as `sbert`, from SRoBERTa (softmax on NLI)."""
    return with_fields(
        sbert(),
        title="sroberta: BSL-SRoBERTa on entailed pairs",
        encoder=ENCODERS["roberta-base-nli-mean-tokens"],
        published=("BSL-SRoBERTa", "SRoBERTa"),
    )


def sroberta_2022() -> PipelineConfig:
    """The authors' code since 2022: as `sroberta`, from a RoBERTa trained with in-batch negatives; no published row.

    As `sbert-released`, with half the learning rate and twice the batch.
    """
    return with_fields(
        sroberta(),
        title="sroberta-2022: BSL on entailed pairs as in its code since 2022",
        encoder=ENCODERS["nli-roberta-base-v2"],
        training=with_fields(_SUPERVISED, lr=5e-5, batch_size=128),
    )


def multilingual() -> PipelineConfig:
    """BSL-uns (Table 3): each English sentence paired with its Arabic, Spanish, Turkish, German and French, mBERT.

    Other settings are those of `nli` (Appendix A).
    """
    return with_fields(
        nli(),
        title="multilingual: BSL-uns on SNLI and MultiNLI in six languages",
        augment=AugmentConfig(translations=tuple(translation(OPUS_MT[f"en-{lang}"]) for lang in LANGUAGES), filters=()),
        pairs=PairConfig(pairings=ACROSS),
        encoder=ENCODERS["bert-base-multilingual-cased"],
        evaluation=as_printed("sts17-bsl"),
        published=("BSL-uns", "mBERT", "XLM-R"),
    )


def multilingual_released() -> PipelineConfig:
    """BSL-uns as the authors' code trains it: lr 5e-5, three predictors, and English pairs next to the translated ones.

    Training settings are those of multilingual_tuning.py. The code pairs two English columns wherever they differ, but
    does not define them; the recipe assumes the paper's two round trips. Deviation: fp32 instead of fp16; a translation
    equal to its English sentence is excluded too.
    """
    base = multilingual()
    return with_fields(
        base,
        title="multilingual-released: BSL-uns as its code was released",
        augment=AugmentConfig(translations=(*base.augment.translations, *trips_of("en", OPUS_MT)), filters=()),
        pairs=PairConfig(pairings=(*PairConfig().pairings, *ACROSS), drop_identical=True),
        training=with_fields(RELEASED_TRAINING, lr=5e-5, drop_last=False),
    )


def multilingual_sup() -> PipelineConfig:
    """BSL-sup (Table 3): as `multilingual`, from the XLM-R that was distilled from SBERT-nli-stsb.

    The paper states its learning rate for unsupervised runs; the recipe uses it too.
    """
    return with_fields(
        multilingual(),
        title="multilingual-sup: BSL-sup on SNLI and MultiNLI in six languages",
        encoder=ENCODERS["stsb-xlm-r-multilingual"],
        published=("BSL-sup", "XLM-R ← SBERT-nli-stsb", "LaBSE"),
    )


def afs() -> PipelineConfig:
    """BSL on AFS (Table 10): as `nli`, on the sentences of the arguments, without their labels."""
    return with_fields(
        nli(),
        title="afs: BSL on the sentences of Argument Facet Similarity",
        ingest=IngestConfig(sources=(SourceSpec(dataset="afs"),)),
        evaluation=as_printed("afs"),
        published=("BSL-BERT on AFS", "IS-BERT-AFS", "BERT avg. on AFS"),
    )


def _variant(title: str, augment: AugmentConfig, views: tuple[str, ...], row: str) -> PipelineConfig:
    """Return a row of Table 4: as `nli`, with the sentence paired with other views."""
    return with_fields(
        nli(),
        title=title,
        augment=with_fields(augment, filters=()),
        pairs=beside_original(*views),
        published=(f"BSL-BERT, {row}", "BSL-BERT"),
    )


PAPER: Final = (
    nli, nli_released, nli_authors_views, nli_roberta, entail, nli_entail, synonym, mlm, books, books_nli, sbert,
    sbert_released, sroberta, sroberta_2022, multilingual, multilingual_released, multilingual_sup, afs,
)  # fmt: skip
