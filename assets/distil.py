"""Distil the embedded sentence encoders: a larger encoder teaches a masked LM and a static table on the same text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assets.pretrain import MODEL, read_collections
from assets.training.config import LessonsRecipe, StudentRecipe, TableRecipe
from bsl.storage.artifacts.refs import ArtifactRef, CheckpointRef, CorpusRef, EmbeddingsRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.storage.sources.sources import ResolvedSource
from bsl.tasks.embedding.encoders import encoder_folder
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.training.config import TrainingConfig


@stage(ref=CorpusRef, version=1)
def select_sentences(context: StageContext, sources: tuple[ResolvedSource, ...], recipe: LessonsRecipe) -> None:
    """Choose the sentences of the lessons: those of the masked LM that are short enough.

    Args:
        context: the stage's context.
        sources: Training collections, and the evaluation sets, whose sentences are excluded.
        recipe: Number and length of the sentences.
    """
    import polars as pl

    from assets.training.corpora import english_sentences
    from bsl.models.corpus.normalize import normalize, sentence_ids

    english = english_sentences(read_collections(sources), recipe.seed)
    short = [text for text in english if len(text.split()) <= recipe.most_words]
    texts = pl.DataFrame({"text": short[: recipe.sentences]}).select(normalize(pl.col("text")))
    corpus = texts.select(
        sentence_ids(pl.col("text")).alias("sentence_id"), "text", source=pl.lit("lessons"), lang=pl.lit("en")
    )
    context.draft.write(corpus.unique("sentence_id").sort("sentence_id"))


@stage(ref=ArtifactRef, kind="asset", version=2, uses_torch=True)
def teach_student(
    context: StageContext,
    sentences: CorpusRef,
    vectors: EmbeddingsRef,
    start: ArtifactRef,
    recipe: StudentRecipe,
) -> None:
    """Train the student, resumable, and write it as a sentence-transformers folder in half precision.

    Args:
        context: the stage's context.
        sentences: Training sentences.
        vectors: The teacher's vectors of them.
        start: The masked LM.
        recipe: Training settings.
    """
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder

    config = EncoderConfig(model="bert-mini", max_length=recipe.max_length)
    encoder = SentenceEncoder.load(context.store.fetch(start) / MODEL, config)
    lessons = _lessons(context, sentences, vectors)
    _train(context, encoder, lessons, lessons["embedding"].to_numpy(), recipe.training)


@stage(ref=ArtifactRef, kind="asset", version=1, uses_torch=True)
def teach_table(
    context: StageContext,
    sentences: CorpusRef,
    vectors: EmbeddingsRef,
    teacher: CheckpointRef | ResolvedModel,
    recipe: TableRecipe,
) -> None:
    """Learn a vocabulary, fit a static table to the teacher's vectors, train it on them, and write it as the student.

    Args:
        context: the stage's context.
        sentences: Training sentences.
        vectors: The teacher's vectors of them.
        teacher: The teacher, whose vectors of single tokens are the table's initial ones.
        recipe: Vocabulary, width, training settings.
    """
    from assets.training.vocabulary import train_wordpiece
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.runtime.rows import unit_vectors
    from bsl.models.serving.reduction import fitted_table, principal_axes

    lessons = _lessons(context, sentences, vectors)
    texts, targets_ND = lessons["text"].to_list(), lessons["embedding"].to_numpy()
    tokenizer = train_wordpiece(texts, recipe.vocabulary)
    pieces = tokenizer.convert_ids_to_tokens([*range(len(tokenizer))])
    whole = SentenceEncoder.load(encoder_folder(context.store, teacher))
    tokens_VD = whole.encode([piece.removeprefix("##") for piece in pieces], device=device_of(context.site))
    config = EncoderConfig(model=MODEL, normalize=True, max_length=128)
    table = fitted_table(tokenizer.backend_tokenizer, tokens_VD, texts, targets_ND, config, recipe.dimensions)
    units_ND = unit_vectors(targets_ND)
    axes_DK = principal_axes(units_ND)[:, : recipe.dimensions]
    _train(context, table, lessons, (units_ND @ axes_DK).astype("float32"), recipe.training)


def _lessons(context: StageContext, sentences: CorpusRef, vectors: EmbeddingsRef) -> pl.DataFrame:
    texts = context.store.scan(sentences).select("sentence_id", "text")
    return texts.join(context.store.scan(vectors), on="sentence_id").sort("sentence_id").collect()


def _train(
    context: StageContext,
    encoder: SentenceEncoder,
    lessons: pl.DataFrame,
    targets_ND: NDArray[np.float32],
    config: TrainingConfig,
) -> None:
    import polars as pl

    from assets.training.loop import halve
    from bsl.models.training.loop import train
    from bsl.models.training.snapshots import Execution
    from bsl.models.training.token_cache import TeacherVectors

    pairs = lessons.select("sentence_id", text_1=pl.col("text"), text_2=pl.col("text"))
    execution = Execution(
        work=context.store.scratch(context.ref), device=device_of(context.site), on_progress=progress_of("student")
    )
    ids = lessons["sentence_id"].to_numpy()
    result = train(pairs, encoder, config, teacher=TeacherVectors(ids, targets_ND), execution=execution)
    folder = context.draft.folder / MODEL
    encoder.with_network(result.encoder).save(folder)
    for weights in folder.rglob("model.safetensors"):
        halve(weights.parent)
    losses = result.log["loss"].drop_nulls()
    context.draft.note(
        {"steps": result.steps, "sentences": len(lessons), "first_loss": losses[0], "last_loss": losses[-1]}
    )
