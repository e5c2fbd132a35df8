"""Fine-tune an encoder inside a stage; like any training it saves snapshots, stops at SIGTERM and resumes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.signature import rows_digest
from bsl.models.training.config import TrainingConfig
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.embedding.encoders import encoder_folder, load_encoder
from bsl.tasks.embedding.vectors import encoder_computation
from bsl.tasks.stage.cached import StageInputs
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.sigterm import stop_requested
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from numpy.typing import NDArray
    from pydantic import JsonValue

    from bsl.tasks.stage.cached import StageContext

CROSS: Final = "cross-encoder"  # in signatures, and in names of protocols


class FineTuning(StageInputs):
    """Settings of a fine-tuning."""

    encoder: CheckpointRef | ResolvedModel
    network: EncoderConfig
    """Pooling, length and dropout."""
    config: TrainingConfig

    def seeded(self, seed: int) -> FineTuning:
        """Return the same settings with another seed."""
        return self.model_copy(update={"config": self.config.model_copy(update={"seed": seed})})


def finetune(
    context: StageContext, tuning: FineTuning, pairs: pl.DataFrame, task: str, dev: pl.DataFrame | None = None
) -> Callable[[pl.DataFrame], NDArray[np.float64]]:
    """Fine-tune an encoder, or read a finished run back from the stage's scratch folder.

    `pairs` have `text_1`, `text_2` and `score` in [0, 1]; the scored pairs `dev` select the checkpoint.

    Returns:
        A function from pairs with `sentence1` and `sentence2` to their similarity under the tuned encoder, shape (n,):
        the cosine, in [-1, 1], or a cross-encoder's score, in [0, 1].

    Raises:
        TrainingError: As `bsl.models.training.loop.train`.
    """
    # Imported here, so that a run with all stages cached does not import torch and transformers.
    from bsl.models.evaluation.correlation import cosine_scores
    from bsl.models.training.loop import train

    start = load_encoder(context.store, tuning.encoder, tuning.network)
    device = device_of(context.site)
    with context.store.own_scratch(context.ref) as work, stop_requested() as should_stop:
        result = train(
            pairs,
            start,
            tuning.config,
            dev=dev,
            execution=replace(
                context.site.execution(work), device=device, should_stop=should_stop, on_progress=progress_of(task)
            ),
        )

    tuned = start.with_network(result.encoder)

    def similarity(scored: pl.DataFrame) -> NDArray[np.float64]:
        tokens = tuned.tokenize([*scored["sentence1"], *scored["sentence2"]])
        first, second = np.arange(2 * scored.height).reshape(2, -1)
        return result.encoder.to(device).pair_scores(tokens, first, second, cosine_scores)

    return similarity


def tuned_computation(context: StageContext, tuning: FineTuning, training_data: str) -> dict[str, JsonValue]:
    """Return the signature fields of a fine-tuned encoder; without the seed, because a score combines several seeds."""
    settings = tuning.config.model_dump_json(exclude={"seed"})
    computation = encoder_computation(encoder_folder(context.store, tuning.encoder), tuning.network, "fp32")
    tuned = f"{training_data}@{rows_digest([(settings, ())])}"
    if tuning.config.objective.reads_pairs:
        return computation | {"vectors": CROSS, "pool": "cls", "norm": False, "tuned": tuned}
    return computation | {"vectors": "tuned", "tuned": tuned}
