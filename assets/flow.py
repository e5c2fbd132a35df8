"""Rebuild the embedded models from licensed collections and a seed: one line for each artifact.

The translator into English starts from the weights of the translator from English (same vocabulary, words already
aligned). It is also trained on back-translations by that translator, so that round trips preserve the meaning.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from assets.distil import select_sentences, teach_student, teach_table
from assets.pack import pack, record
from assets.pretrain import (
    BackTranslation,
    back_translate,
    locate_collections,
    pretrain_encoder,
    pretrain_translator,
    split_parallel,
)
from assets.training.config import (
    EncoderRecipe,
    LearningConfig,
    LessonsRecipe,
    StudentRecipe,
    TableRecipe,
    TranslatorRecipe,
)
from assets.training.corpora import ENGLISH, EVALUATION, LANGUAGES, MULTILINGUAL, NLI, PARALLEL
from assets.verify import (
    BACK,
    ENCODER,
    FORWARD,
    HELD_OUT,
    MULTILINGUAL_ENCODER,
    SENTENCES,
    STUDENT,
    TABLE,
    figures_of,
)
from bsl.flows.checked_flow import flow
from bsl.flows.run_context import run_context_of
from bsl.models.encoder.config import EncoderConfig
from bsl.storage.assets.embedded import assets_root
from bsl.storage.record import Record
from bsl.storage.sources.sources import SourceSpec, resolve_source
from bsl.tasks.embedding.embed import embed
from bsl.tasks.embedding.encoders import resolve
from bsl.tasks.stage.log_context import show_logs
from bsl.tasks.stage.run_context import RunContext

_GERMAN_FRENCH = {"de": 1.0, "fr": 1.0}


class AssetsConfig(Record):
    """Settings of every embedded model. The defaults suit a GPU; a CPU takes hours."""

    encoder: EncoderRecipe = EncoderRecipe()
    """bert-mini."""
    multilingual: EncoderRecipe = EncoderRecipe(
        multilingual=True, vocabulary=16_384, learning=LearningConfig(steps=12_000, seed=1)
    )
    """bert-mini-mul."""
    forward: TranslatorRecipe = TranslatorRecipe(near=2.0)
    """marian-mini-en-mul."""
    back: TranslatorRecipe = TranslatorRecipe(shares=_GERMAN_FRENCH, into_english=True)
    """marian-mini-mul-en, first training: parallel sentences only."""
    round_trip: TranslatorRecipe = TranslatorRecipe(
        shares={"de": 0.5, "fr": 0.5},
        into_english=True,
        back_translated=0.5,
        learning=LearningConfig(steps=4000, peak_lr=1.5e-3, warmup_steps=100, seed=2),
    )
    """marian-mini-mul-en, second training: with back-translated English added."""
    teacher: EncoderConfig = EncoderConfig(
        model="sentence-transformers/all-MiniLM-L6-v2", normalize=True, max_length=128
    )
    """Encoder whose vectors mini-sentence and static-sentence learn."""
    lessons: LessonsRecipe = LessonsRecipe()
    """Sentences of these vectors."""
    student: StudentRecipe = StudentRecipe()
    """mini-sentence."""
    table: TableRecipe = TableRecipe()
    """static-sentence."""
    captions: int = Field(default=81_000, ge=1)
    """Captions to back-translate, for each of German and French."""
    everyday: int = Field(default=110_000, ge=1)
    """Tatoeba sentences to back-translate, for each of German and French."""
    measured: int = Field(default=SENTENCES, ge=5)
    """Held-out sentences for the recorded figures; `python -m assets verify` uses 200."""


@flow(name="bsl-assets", flow_run_name="embedded assets")
def assets(config: AssetsConfig, site: RunContext | None = None, root: Path | None = None) -> dict[str, str]:
    """Train, measure and pack the embedded models; return the artifact key of each.

    Args:
        config: Shapes, budgets, data shares.
        site: Store, mirror and device; defaults to the worker's environment. The mirror must contain the collections.
        root: Folder to pack into; defaults to the package's folder.
    """
    show_logs()
    context = run_context_of(site)
    english = locate_collections(context, (*ENGLISH, *EVALUATION))
    several = locate_collections(context, (*MULTILINGUAL, *EVALUATION))
    held_out = tuple(
        resolve_source(SourceSpec(dataset=f"embedded:{HELD_OUT}", split=f"tatoeba-{code}")) for code in LANGUAGES
    )
    english_sides = locate_collections(context, (NLI[0], *PARALLEL, *EVALUATION))
    sample = resolve_source(SourceSpec(dataset="embedded:nli-sample"))

    encoder = pretrain_encoder(context, english, (), config.encoder)
    multilingual = pretrain_encoder(context, several, held_out, config.multilingual)
    teacher = resolve(context, config.teacher)
    sentences = select_sentences(context, english, config.lessons)
    vectors = embed(context, teacher.encoder, sentences, teacher.config, "fp32")
    student = teach_student(context, sentences, vectors, encoder, config.student)
    table = teach_table(context, sentences, vectors, teacher.encoder, config.table)
    parallel = split_parallel(context, locate_collections(context, (*PARALLEL, NLI[0])), config.forward)
    forward = pretrain_translator(context, parallel, None, None, config.forward)
    first_back = pretrain_translator(context, parallel, forward, None, config.back)
    amounts = BackTranslation(languages=tuple(_GERMAN_FRENCH), captions=config.captions, everyday=config.everyday)
    returned = back_translate(context, forward, english_sides, parallel, sample, amounts)
    back = pretrain_translator(context, parallel, first_back, returned, config.round_trip)

    models = {
        FORWARD: (forward, config.forward.learning.seed),
        BACK: (back, config.round_trip.learning.seed),
        ENCODER: (encoder, config.encoder.learning.seed),
        MULTILINGUAL_ENCODER: (multilingual, config.multilingual.learning.seed),
        STUDENT: (student, config.student.training.seed),
        TABLE: (table, config.table.training.seed),
    }
    folder = root or assets_root()
    for name, (ref, seed) in models.items():
        pack(context.open_store(), ref, name, folder, seed)
    for name in models:
        record(name, folder, figures_of(name, config.measured, folder))
    return {name: ref.key for name, (ref, _) in models.items()}
