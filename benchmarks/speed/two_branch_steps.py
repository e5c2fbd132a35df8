"""Steps with BSL's two branches for systems/: the product's, and the authors' code restated plainly.

The plain step is that of BYOLoss.py with the paper's predictor. Each step tokenises its batch and pads each view to its
longest sentence. The views pass transformers' model one after the other, online and target; the target's weights are
averaged parameter by parameter into new tensors. AdamW is fused, unlike the released code's.

Shapes: B pairs, T tokens of the longest sentence, D width.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer

from benchmarks.speed.stepping import SEED, Step, batches, plain_step, product_step, training
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.bsl_config import BSLConfig

LENGTH = 64

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Loss of a view's predictions (B, D) and the target's vectors of the other view (B, D)."""


def two_branch_steps(encoder_folder: Path, pairs: pl.DataFrame, objective: BSLConfig, loss: Loss) -> tuple[Step, Step]:
    """Return our step, and the plain one with the sum of `loss` over both views."""
    encoder = EncoderConfig(model=str(encoder_folder), max_length=LENGTH)
    return product_step(encoder, pairs, training(objective)), _plain(encoder_folder, pairs, objective, loss)


def _plain(folder: Path, pairs: pl.DataFrame, objective: BSLConfig, loss: Loss) -> Step:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    online = AutoModel.from_pretrained(folder).train()
    target = copy.deepcopy(online).eval()
    torch.manual_seed(SEED)
    predictor = _predictor(online.config.hidden_size, objective.k)
    learning, some = [*online.parameters(), *predictor.parameters()], batches(pairs, training(objective))

    def value() -> torch.Tensor:
        batch = next(some)
        views = [
            tokenizer(batch[name].to_list(), truncation=True, max_length=LENGTH, padding=True, return_tensors="pt")
            for name in ("text_1", "text_2")
        ]
        z1_BD, z2_BD = (predictor(_mean(online, view)) for view in views)
        with torch.no_grad():
            t1_BD, t2_BD = (_mean(target, view) for view in views)
        return loss(z1_BD, t2_BD) + loss(z2_BD, t1_BD)

    def follow() -> None:
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.data = objective.momentum * slow.data + (1 - objective.momentum) * fast.data

    return plain_step(learning, value, follow)


def _mean(model: nn.Module, view: dict[str, torch.Tensor]) -> torch.Tensor:
    x_BTD = model(input_ids=view["input_ids"], attention_mask=view["attention_mask"]).last_hidden_state
    mask_BT1 = view["attention_mask"][..., None].to(x_BTD.dtype)
    mean_BD: torch.Tensor = (x_BTD * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1)
    return mean_BD


def _predictor(width: int, k: int) -> nn.Module:
    wide = k * width
    hidden = (nn.Linear(width, wide), nn.BatchNorm1d(wide), nn.ReLU())
    return nn.Sequential(*hidden, nn.Linear(wide, wide), nn.BatchNorm1d(wide), nn.ReLU(), nn.Linear(wide, width))
