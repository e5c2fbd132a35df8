"""A small training run that tests start and interrupt."""

from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.config import AnyObjective
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import TrainingResult, train
from bsl.models.training.snapshots import Execution
from bsl.models.training.token_cache import TeacherVectors
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS

OBJECTIVE_CONFIGS = {config.model_fields["name"].default: config for config in get_args(AnyObjective)}

PAIRS = pl.DataFrame(
    {
        "text_1": ORIGINALS + ORIGINALS + BACK_DE,
        "text_2": BACK_DE + BACK_FR + BACK_FR,
        "score": [0.9] * 8 + [0.4] * 4,
        "sentence_id": list(range(4)) * 3,
        "label": [0, 1, 2, 0] * 3,
        "group": [1, 1, 1, 2] * 3,
    },
    schema_overrides={"group": pl.UInt64},
)
TEACHER = TeacherVectors(np.arange(4, dtype=np.uint64), np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))
DEV = pl.DataFrame(
    {
        "sentence1": ORIGINALS + ORIGINALS,
        "sentence2": BACK_DE + BACK_DE[::-1],
        "score": [5.0, 5.0, 5.0, 5.0, 0.0, 1.0, 2.0, 1.5],
    }
)
# Dropout (torch's generator), running target statistics and several epochs: everything that a resume could lose.
CONFIG = TrainingConfig(
    precision="fp32",
    objective=BSLConfig(k=2, momentum=0.9, momentum_schedule="cosine", target_norm="standardize", target_dropout=True),
    batch_size=5,
    epochs=6,
    lr=1e-2,
    eval_every=3,
    seed=3,
    collapse=None,
)
STEPS = 12


def run(folder: Path, config: TrainingConfig = CONFIG, dev: pl.DataFrame | None = DEV, **execution) -> TrainingResult:
    torch.set_num_threads(1)
    start = SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24))
    return train(PAIRS, start, config, dev=dev, teacher=TEACHER, execution=Execution(**execution))
