"""Post-hoc transforms: fit one on vectors, apply it to vectors, or fold it into the encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.encoder.config import EncoderConfig
from bsl.models.transforms.config import TransformConfig
from bsl.storage.artifacts.refs import ENCODER, ArtifactRef, CheckpointRef, EmbeddingsRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.corpus.evaluation_sets import EvaluationSet
from bsl.tasks.embedding.encoders import load_encoder
from bsl.tasks.embedding.vectors import computation_of
from bsl.tasks.figures import VectorsFigures
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.sigterm import stop_requested
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    import torch

    from bsl.models.transforms.config import Transform

SETTINGS: Final = "transform.json"
TENSORS: Final = "transform.safetensors"


@stage(ref=ArtifactRef, kind="transform", version=1, uses_torch=True)
def fit_transform(context: StageContext, embeddings: EmbeddingsRef, config: TransformConfig) -> None:
    """Fit a transform on the vectors of sentences, without labels; an iterative fit resumes after a kill.

    Raises:
        EvaluationError: The transform cannot be fitted to these vectors with these settings.
        TrainingError: The fit was asked to stop, and saved its state.
    """
    _fit(context, context.store.scan(embeddings).collect(), config)


@stage(ref=ArtifactRef, kind="transform", version=1, uses_torch=True)
def fit_on_sets(
    context: StageContext, embeddings: EmbeddingsRef, sets: tuple[EvaluationSet, ...], config: TransformConfig
) -> None:
    """Fit a transform on the vectors of evaluation sets, those of a sentence as often as the sets contain it.

    BERT-whitening's `prepare` and BERT-flow's pairs do so too. It matters for sets that repeat sentences, such as
    STS 2012. Errors are those of `fit_transform`.
    """
    texts = pl.concat([evaluation_set.sentences() for evaluation_set in sets]).to_frame("text")
    occurrences = texts.select(sentence_id=sentence_ids(pl.col("text")))
    vectors = context.store.scan(embeddings).collect()
    _fit(context, occurrences.join(vectors, on="sentence_id", how="left", maintain_order="left"), config)


def _fit(context: StageContext, table: pl.DataFrame, config: TransformConfig) -> None:
    from safetensors.torch import save_file

    vectors_ND = _tensor(table)
    with context.store.own_scratch(context.ref) as work, stop_requested() as should_stop:
        advance = progress_of(f"fitting {config.name}")
        # A transform has its own default number of steps between snapshots.
        execution = replace(context.site.execution(work), save_every=None, should_stop=should_stop, on_progress=advance)
        fitted = config.fitted(vectors_ND, execution)
    save_file({name: tensor.contiguous() for name, tensor in fitted.tensors.items()}, context.draft.folder / TENSORS)
    (context.draft.folder / SETTINGS).write_text(config.model_dump_json(indent=1), encoding="utf-8")
    context.draft.note({"vectors": len(vectors_ND), "dimensions": vectors_ND.shape[1], **fitted.figures})


@stage(ref=EmbeddingsRef, version=3, uses_torch=True)
def transform(context: StageContext, embeddings: EmbeddingsRef, fitted: ArtifactRef) -> None:
    """Apply a fitted transform to the vectors of evaluation sets."""
    restored = _restored(context, fitted)
    table = context.store.scan(embeddings).collect()
    vectors_NK = restored.apply(_tensor(table))
    context.draft.write(table.select("sentence_id", embedding=pl.Series(vectors_NK.numpy())))
    before = computation_of(context.store, embeddings)
    computation = before | {"vectors": f"{before['vectors']}+{restored.config.name}", "fitted": str(fitted)}
    figures = VectorsFigures(sentences=table.height, dimensions=vectors_NK.shape[1], signature=computation)
    context.draft.note(figures)


@stage(ref=CheckpointRef, version=4, uses_torch=True)
def fold_transform(
    context: StageContext, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig, fitted: ArtifactRef
) -> None:
    """Fold a linear transform into its encoder, which then computes the transformed vectors itself.

    sentence-transformers can load the result. Its vectors equal those of `transform`, which computes in float64, up to
    the rounding of fp32.

    Raises:
        EncoderError: The transform is not linear.
    """
    from bsl.models.errors import EncoderError
    from bsl.models.serving.reduction import fold

    restored = _restored(context, fitted)
    if (linear := restored.linear()) is None:
        raise EncoderError(
            f"{fitted}: {restored.config.name} cannot be folded into an encoder (expected a linear transform, such as "
            "whitening). Transform the encoder's vectors instead."
        )
    start = load_encoder(context.store, encoder, config)
    folded = start.with_network(fold(start.network, *linear))
    folded.save(context.draft.folder / ENCODER)
    context.draft.note({"max_length": folded.config.length, "dimensions": folded.width})


def _restored(context: StageContext, fitted: ArtifactRef) -> Transform:
    from pydantic import TypeAdapter
    from safetensors.torch import load_file

    folder = context.store.fetch(fitted)
    config = TypeAdapter(TransformConfig).validate_json((folder / SETTINGS).read_text(encoding="utf-8"))
    return config.transform_class()(config, load_file(folder / TENSORS))


def _tensor(table: pl.DataFrame) -> torch.Tensor:
    import torch

    return torch.tensor(table["embedding"].to_numpy())  # a copy, as Polars' memory is read-only
