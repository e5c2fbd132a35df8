"""Post-hoc systems: what is fitted on a corpus's vectors, and the vectors that it makes of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.baselines.config import TransformConfig
from storage.refs import EmbeddingsRef, TransformRef
from tasks.evaluation.vectors import MADE, made_of
from tasks.stage.cached import Work, stage
from tasks.stage.machine import settle_threads

if TYPE_CHECKING:
    import torch

SETTINGS: Final = "transform.json"
TENSORS: Final = "transform.safetensors"


@stage(ref=TransformRef, version=1)
def fit_transform(work: Work, embeddings: EmbeddingsRef, config: TransformConfig) -> None:
    """Fit a transform on the vectors of a corpus, without labels.

    Raises:
        EvaluationError: nothing can be learnt from them under these settings.
    """
    from safetensors.torch import save_file

    from models.baselines.posthoc import fitted_transform

    settle_threads(work.site)
    vectors_ND = _tensor(work.store.scan(embeddings).collect())
    fitted = fitted_transform(vectors_ND, config)
    save_file({name: tensor.contiguous() for name, tensor in fitted.tensors.items()}, work.draft.folder / TENSORS)
    (work.draft.folder / SETTINGS).write_text(config.model_dump_json(indent=1), encoding="utf-8")
    work.draft.note({"vectors": len(vectors_ND), "dimensions": vectors_ND.shape[1]})


@stage(ref=EmbeddingsRef, version=2)
def transform(work: Work, embeddings: EmbeddingsRef, fitted: TransformRef) -> None:
    """Apply a fitted transform to the vectors of evaluation sets."""
    from pydantic import TypeAdapter
    from safetensors.torch import load_file

    from models.baselines.posthoc import restore_transform

    settle_threads(work.site)
    folder = work.store.fetch(fitted)
    config = TypeAdapter(TransformConfig).validate_json((folder / SETTINGS).read_text(encoding="utf-8"))
    table = work.store.scan(embeddings).collect()
    vectors_NK = restore_transform(config, load_file(folder / TENSORS)).apply(_tensor(table))
    work.draft.write(table.select("sentence_id", embedding=pl.Series(vectors_NK.numpy())))
    before = made_of(work.store, embeddings)
    made = before | {"vectors": f"{before['vectors']}+{config.name}", "fitted": str(fitted)}
    work.draft.note({"sentences": table.height, "dimensions": vectors_NK.shape[1], MADE: made})


def _tensor(table: pl.DataFrame) -> torch.Tensor:
    import torch

    return torch.tensor(table["embedding"].to_numpy())  # a copy: Polars' memory is not to be written
