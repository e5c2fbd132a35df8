"""Peers of the product's step in bench_training.py: the released code, and sentence-transformers' trainer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import torch
from transformers import AutoTokenizer

from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl import BSL
from bsl.models.objectives.objective import Batch
from bsl.models.training.batches import BatchOrder
from bsl.models.training.token_cache import TokenCache
from bsl.storage.assets.embedded import embedded_path

RATE = 1e-5  # learning rate: the weights hardly change, so all rounds time the same work


def released_loss(net: BSL, batch: Batch) -> torch.Tensor:
    """BYOLoss.py: [2 − 2cos(p(o₁), t₂)] + [2 − 2cos(p(o₂), t₁)], each view padded to its longest sentence."""
    views = [batch.tokens.padded(rows) for rows in (batch.view_1, batch.view_2)]
    p1, p2 = (net.predictor(net.online(*view)) for view in views)
    with torch.no_grad():
        t1, t2 = (net.target(*view) for view in views)
    cosine = partial(torch.nn.functional.cosine_similarity, dim=-1)
    return ((2 - 2 * cosine(p1, t2)) + (2 - 2 * cosine(p2, t1))).mean()


def released_steps(net: BSL, data: TokenCache, order: BatchOrder) -> Callable[[int], int]:
    """Return the released code's step."""
    learning = net.learning_parameters()
    optimizer = torch.optim.AdamW(learning, lr=RATE, eps=1e-6, weight_decay=0.0, foreach=False, fused=False)

    def step(number: int) -> int:
        batch = data.take(order.rows(number))
        loss = released_loss(net, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(learning, 1.0, foreach=False)
        optimizer.step()
        optimizer.zero_grad()
        for ours, theirs in zip(net.target.parameters(), net.online.parameters(), strict=True):
            ours.data = 0.999 * ours.data + (1 - 0.999) * theirs.data
        return len(batch.tokens.ids)

    return step


def sentence_transformers_steps(
    encoder: Encoder, frame: pl.DataFrame, order: BatchOrder, folder: Path
) -> Callable[[int], int]:
    """Return a SentenceTransformerTrainer's step with MultipleNegativesRankingLoss, its collator and fused AdamW."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    tokenizer = AutoTokenizer.from_pretrained(embedded_path("bert-mini"))
    SentenceEncoder(encoder, tokenizer).save(folder / "st")
    model = SentenceTransformer(str(folder / "st"), device="cpu").train()
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder / "out"), learning_rate=RATE, use_cpu=True, report_to="none", disable_tqdm=True
    )
    texts = Dataset.from_dict({"anchor": frame["text_1"].to_list(), "positive": frame["text_2"].to_list()})
    trainer = SentenceTransformerTrainer(model, arguments, texts, loss=MultipleNegativesRankingLoss(model))
    trainer.create_optimizer_and_scheduler(10**6)
    optimizer = trainer.optimizer
    assert optimizer is not None
    trainer.current_gradient_accumulation_steps = 1  # as train() would set it

    def step(number: int) -> int:
        inputs = trainer.data_collator([texts[int(row)] for row in order.rows(number)])
        useful = sum(int(value.sum()) for name, value in inputs.items() if name.endswith("attention_mask"))
        trainer.training_step(model, inputs)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return useful

    return step
