"""Distillation of a teacher's vectors: the product's step and sentence-transformers' MSELoss on the same batches.

Both learn the same vectors for both views, without a projection, in fp32. Tokenising is in neither step: the product
does it once per run, and the peer's time omits it in the peer's favour.
"""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MSELoss

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.optimizer import make_optimizer, take_step
from bsl.models.training.snapshots import TrainingState
from bsl.models.training.token_cache import TeacherVectors, open_token_cache

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG = TrainingConfig(precision="fp32", objective=DistilConfig(loss="vectors"), lr=1e-5, weight_decay=0.0)


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return our step and the peer's, on equal batches; both return the loss before the step.

    Args:
        encoder_folder: Folder of a transformer.
        pairs: Columns `text_1` and `text_2`.
    """
    encoder = SentenceEncoder.load(encoder_folder, EncoderConfig(model=encoder_folder.name))
    numbered = pairs.with_columns(sentence_id=pl.int_range(len(pairs), dtype=pl.UInt64))
    drawn = np.random.default_rng(0).normal(size=(len(pairs), encoder.width)).astype(np.float32)
    teacher = TeacherVectors(np.arange(len(pairs), dtype=np.uint64), drawn)
    with tempfile.TemporaryDirectory() as folder:
        encoder.save(Path(folder))
        peer = SentenceTransformer(folder, device="cpu").train()
    data = open_token_cache(Path(tempfile.mkdtemp()), numbered.lazy(), encoder, frozenset({"sentence_id"}), teacher)
    objective = CONFIG.objective.build(encoder.network)
    run = TrainingState("bench", 10**6, objective, make_optimizer(objective, CONFIG))
    loss = MSELoss(peer)
    optimizer = torch.optim.AdamW(peer.parameters(), lr=CONFIG.lr, eps=CONFIG.eps, weight_decay=0.0, fused=True)
    ours, theirs = (BatchOrder(len(data), CONFIG, data.lengths_of) for _ in range(2))
    places = count(1)

    def our_step() -> float:
        return float(take_step(run, data.take(ours.rows(run.step + 1)), CONFIG)[0])

    def peer_step() -> float:
        batch = data.take(theirs.rows(next(places)))
        padded = [batch.tokens.padded(view) for view in (batch.view_1, batch.view_2)]
        features = [{"input_ids": ids, "attention_mask": mask} for ids, mask in padded]
        value = loss(features, torch.from_numpy(batch.columns["teacher"]))
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), CONFIG.clip)
        optimizer.step()
        return float(value.detach())

    return our_step, peer_step
