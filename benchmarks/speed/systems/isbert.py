"""IS-BERT's step and its released code, restated plainly: padded batches, masked products, AdamW in a loop, fp32.

The peer gets its batches as tokens and builds its masks at once; the released code tokenises in the step and fills the
masks token by token.
"""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import torch

from bsl.models.encoder.cnn import with_convolutions
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.contrastive_config import ISBERTConfig
from bsl.models.objectives.objective import Batch
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.optimizer import make_optimizer, take_step
from bsl.models.training.snapshots import TrainingState
from bsl.models.training.token_cache import TokenCache, open_token_cache

CONFIG = TrainingConfig(
    precision="fp32",  # the rate hardly changes weights, so all rounds time the same work
    objective=ISBERTConfig(),
    lr=1e-6,
    eps=1e-7,
    batch_size=32,
    warmup=0.0,
    decay="constant",
)
# The released length is 128. Up to 64 tokens `bert-mini` also runs unpadded, as BERT does at any length.
READ = EncoderConfig(model="bench", max_length=64, cnn=CNNConfig(relu=False))


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return our step and the peer's, each on the next batch; both return the loss."""
    bare = SentenceEncoder.load(encoder_folder, READ)
    torch.manual_seed(0)
    encoder = with_convolutions(bare.network)
    with tempfile.TemporaryDirectory() as folder:  # the file stays mapped
        data = open_token_cache(Path(folder), pairs.lazy(), bare)
    return _ours(copy.deepcopy(encoder), _batches(data)), _peer(encoder, _batches(data))


def _batches(data: TokenCache) -> Iterator[Batch]:
    order, number = BatchOrder(len(data), CONFIG, data.lengths_of), 0
    while True:
        number += 1
        yield data.take(order.rows(number))


def _ours(encoder: Encoder, batches: Iterator[Batch]) -> Callable[[], float]:
    objective = CONFIG.objective.build(encoder)
    run = TrainingState("", 10**9, objective, make_optimizer(objective, CONFIG))

    def step() -> float:
        return float(take_step(run, next(batches), CONFIG)[0])

    return step


def _peer(encoder: Encoder, batches: Iterator[Batch]) -> Callable[[], float]:
    encoder.train()
    learning = list(encoder.parameters())
    optimizer = torch.optim.AdamW(learning, lr=CONFIG.lr, eps=CONFIG.eps, foreach=False, fused=False)

    def step() -> float:
        batch = next(batches)
        loss = _released_loss(encoder, *batch.tokens.padded(batch.view_1))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(learning, CONFIG.clip, foreach=False)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def _released_loss(encoder: Encoder, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """MutualInformationLoss.py, with the JSD measure."""
    (cnn,) = encoder.token_heads
    x_BTD = cnn(encoder.backbone(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state)
    weights_BT1 = mask_BT[..., None].float()
    vectors_BD = (x_BTD * weights_BT1).sum(1) / weights_BT1.sum(1)
    lengths = mask_BT.sum(1).tolist()
    tokens_ND = torch.cat([x_TD[:length] for x_TD, length in zip(x_BTD, lengths, strict=True)])
    positive_NB = torch.block_diag(*(torch.ones(length, 1) for length in lengths))  # type: ignore[no-untyped-call]
    products_NB = tokens_ND @ vectors_BD.T
    own_NB, other_NB = products_NB * positive_NB, products_NB * (1 - positive_NB)
    softplus = torch.nn.functional.softplus
    e_pos = (math.log(2) - softplus(-own_NB)).sum() / len(products_NB)
    e_neg = (softplus(-other_NB) + other_NB - math.log(2)).sum() / (len(products_NB) * (len(lengths) - 1))
    loss: torch.Tensor = e_neg - e_pos
    return loss
