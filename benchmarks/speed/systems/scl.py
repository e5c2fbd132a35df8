"""Supervised contrastive learning: the product's step, and the released code's, restated plainly.

The restatement pads each side to its longest sentence, loops over anchors and candidates as bert_sent_embed.py does,
and steps AdamW parameter by parameter. It averages over real tokens, so that the losses are equal.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import torch
from torch.nn import functional

from benchmarks.speed.stepping import RATE, SEED, Step, batches, product_step
from benchmarks.speed.supervised_steps import LENGTH, annotated, config_of, encoder_of
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.scl import SCL
from bsl.models.objectives.supervised_config import SCLConfig


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Return our step and the peer's on equal batches of labelled pairs in groups; the two losses are equal."""
    pairs, config = annotated(pairs), config_of(SCLConfig(similarity="cosine", temperature=0.05))
    read = encoder_of(encoder_folder)
    encoder = SentenceEncoder.load(encoder_folder, read)
    torch.manual_seed(SEED)
    objective = config.objective.build(encoder.network)
    assert isinstance(objective, SCL)
    learning = objective.learning_parameters()
    optimizer = torch.optim.AdamW(learning, lr=RATE, eps=config.eps, foreach=False, fused=False)
    frames = batches(pairs, config)

    def step() -> float:
        frame = next(frames)
        padded = [
            encoder.tokenizer(
                frame[side].to_list(), padding=True, truncation=True, max_length=LENGTH, return_tensors="pt"
            )
            for side in ("text_1", "text_2")
        ]
        u_BD, v_BD = (objective.online(side["input_ids"], side["attention_mask"]) for side in padded)
        loss = released_loss(objective, u_BD, v_BD, frame["label"].to_list(), frame["group"].to_list())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(learning, config.clip, foreach=False)
        optimizer.step()
        return float(loss.detach())

    return product_step(read, pairs, config), step


def released_loss(
    objective: SCL, u_BD: torch.Tensor, v_BD: torch.Tensor, labels: list[int], groups: list[int]
) -> torch.Tensor:
    """Return (1 − λ) · CE + λ · SCL / anchors, computed anchor by anchor."""
    weight, temperature = objective.config.weight, objective.config.temperature
    loss = (1 - weight) * functional.cross_entropy(objective.classifier(u_BD, v_BD), torch.tensor(labels))
    anchors = [row for row, label in enumerate(labels) if label == 0]
    total = torch.zeros(())
    for anchor in anchors:
        positives = [row for row in anchors if groups[row] == groups[anchor]]
        others = [row for row in range(len(labels)) if row not in positives]
        shown_CD = torch.cat([v_BD[row].unsqueeze(0) for row in [*positives, *others]])
        logits_C = functional.cosine_similarity(shown_CD, u_BD[anchor].unsqueeze(0)) / temperature
        total = total - functional.log_softmax(logits_C, dim=0)[: len(positives)].sum() / len(positives)
    return loss + weight * total / len(anchors) if anchors else loss
