"""Distil the embedded sentence encoder: a larger encoder teaches the embedded masked LM on the same licensed text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assets.pretrain import MODEL, read_collections
from assets.training.config import StudentRecipe
from bsl.storage.artifacts.refs import ArtifactRef, CheckpointRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.storage.sources.sources import ResolvedSource
from bsl.tasks.embedding.encoders import encoder_folder
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.training.token_cache import TeacherVectors


@stage(ref=ArtifactRef, kind="asset", version=1, uses_torch=True)
def teach_student(
    context: StageContext,
    sources: tuple[ResolvedSource, ...],
    start: ArtifactRef,
    teacher: CheckpointRef | ResolvedModel,
    recipe: StudentRecipe,
) -> None:
    """Train the student, resumable, and write it as a sentence-transformers folder in half precision.

    Args:
        context: the stage's context.
        sources: Training collections, and the evaluation sets, whose sentences are excluded.
        start: The masked LM.
        teacher: The encoder whose vectors are the targets.
        recipe: Selection of sentences, and training settings.
    """
    import polars as pl

    from assets.training.corpora import english_sentences
    from assets.training.loop import halve
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.training.loop import train
    from bsl.models.training.snapshots import Execution

    english = english_sentences(read_collections(sources), recipe.training.seed)
    texts = [text for text in english if len(text.split()) <= recipe.most_words][: recipe.sentences]
    targets = _vectors(context, teacher, recipe, texts)
    pairs = pl.DataFrame({"sentence_id": targets.ids, "text_1": texts, "text_2": texts})
    config = EncoderConfig(model="bert-mini", max_length=recipe.max_length)
    encoder = SentenceEncoder.load(context.store.fetch(start) / MODEL, config)
    result = train(
        pairs,
        encoder,
        recipe.training,
        teacher=targets,
        execution=Execution(
            work=context.store.scratch(context.ref), device=device_of(context.site), on_progress=progress_of("student")
        ),
    )
    folder = context.draft.folder / MODEL
    encoder.with_network(result.encoder).save(folder)
    for weights in folder.rglob("model.safetensors"):
        halve(weights.parent)
    losses = result.log["loss"].drop_nulls()
    context.draft.note(
        {"steps": result.steps, "sentences": len(texts), "first_loss": losses[0], "last_loss": losses[-1]}
    )


def _vectors(
    context: StageContext, teacher: CheckpointRef | ResolvedModel, recipe: StudentRecipe, texts: Sequence[str]
) -> TeacherVectors:
    import numpy as np

    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.training.token_cache import TeacherVectors

    encoder = SentenceEncoder.load(encoder_folder(context.store, teacher), recipe.teacher)
    bf16 = recipe.training.precision == "bf16"
    vectors = encoder.encode(texts, device=device_of(context.site), bf16=bf16, on_progress=progress_of("teacher"))
    return TeacherVectors(np.arange(len(texts), dtype=np.uint64), vectors)
