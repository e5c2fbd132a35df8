"""Masked language modelling."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, DataCollatorForLanguageModeling

from benchmarks.speed.stepping import Step, batches, plain_step, product_step, training
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig

PEER = "transformers AutoModelForMaskedLM, its collator"


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Return our step, and that of transformers' run_mlm.py: padded batches, logits of every token."""
    objective = MaskedLMConfig()
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    model = AutoModelForMaskedLM.from_pretrained(encoder_folder).train()
    collate = DataCollatorForLanguageModeling(tokenizer=tokenizer, mlm=True, mlm_probability=objective.share)
    some = batches(pairs, training(objective))

    def peer() -> torch.Tensor:
        tokens = tokenizer(
            next(some)["text_1"].to_list(), truncation=True, max_length=64, return_special_tokens_mask=True
        )
        rows = [{name: tokens[name][row] for name in tokens} for row in range(len(tokens["input_ids"]))]
        loss: torch.Tensor = model(**collate(rows)).loss
        return loss

    encoder = EncoderConfig(model=str(encoder_folder), max_length=64)
    return product_step(encoder, pairs, training(objective)), plain_step(list(model.parameters()), peer)
