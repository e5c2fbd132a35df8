"""Supervised fine-tuning of an encoder on graded pairs: the regression objective of SBERT (section 3).

Loss: mean of (cos(u, v) − gold)², gold scaled to [0, 1]. Used by the supervised STS-B protocol (SBERT Table 2, IS-BERT
Table 4) and the supervised protocols of AFS (SBERT section 4.3). Best dev epoch if there is a dev set, else the last.

Shapes: B pairs, D width.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from models.encoder.arithmetic import arithmetic
from models.encoder.encode import ENCODE_TOKENS, encode_tokens
from models.encoder.tokens import tokenise
from models.errors import EvaluationError, NonFiniteLossError
from models.evaluation.correlation import cosine_scores, spearman
from models.training.batches import permutation
from models.training.config import TrainingConfig
from models.training.randomness import seeded
from models.training.schedule import learning_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.encoder.network import Encoder
    from models.evaluation.config import FinetuneConfig


@dataclass(frozen=True)
class GradedPairs:
    """Pairs with gold scores in [0, 1].

    Attributes:
        name: for messages.
        texts_1: first sentences, (n,).
        texts_2: second sentences, (n,).
        gold: (n,), in [0, 1].
    """

    name: str
    texts_1: Sequence[str]
    texts_2: Sequence[str]
    gold: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not len(self.texts_1) == len(self.texts_2) == len(self.gold):
            raise EvaluationError(
                f"{self.name}: {len(self.texts_1)} and {len(self.texts_2)} sentences with {len(self.gold)} scores, "
                "expected three equal lengths; read the set again"
            )
        bad = np.flatnonzero(~((self.gold >= 0) & (self.gold <= 1)))
        if len(bad):
            raise EvaluationError(
                f"{self.name}: row {bad[0]} has the scaled score {self.gold[bad[0]]}, expected 0 to 1; divide by the "
                "largest score of the set"
            )


def finetune(
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    train: GradedPairs,
    config: FinetuneConfig,
    seed: int,
    *,
    dev: GradedPairs | None = None,
    device: str | torch.device = "cpu",
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Encoder:
    """Fine-tune an encoder in place and give it back, in evaluation mode.

    Args:
        encoder: where it starts.
        tokenizer: the encoder's own.
        train: what it learns.
        config: how.
        seed: decides dropout and the order of the pairs.
        dev: set whose Spearman selects the epoch; None keeps the last.
        device: where to compute.
        on_progress: called as (steps done, steps in all, detail).

    Raises:
        EvaluationError: no training pairs.
        NonFiniteLossError: the loss left the numbers.
    """
    if len(train.gold) == 0:
        raise EvaluationError(f"{train.name}: no pairs to learn from, expected at least 1; use fewer folds")
    pairs = _doubled(train) if config.both_orders else train
    tokens = tokenise(tokenizer, [*pairs.texts_1, *pairs.texts_2], encoder.config.max_length)
    gold = torch.from_numpy(pairs.gold).float().to(device)
    count = len(pairs.gold)
    steps = math.ceil(count / config.batch_size)
    total = steps * config.epochs
    schedule = TrainingConfig(lr=config.lr, warmup=config.warmup)
    encoder.to(device)
    optimizer = _optimizer(encoder, config)
    best: tuple[float, dict[str, torch.Tensor]] | None = None
    with seeded(seed):
        for epoch in range(config.epochs):
            encoder.train()
            order = permutation(count, seed, epoch)
            for number, rows in enumerate(np.split(order, range(config.batch_size, count, config.batch_size))):
                step = epoch * steps + number + 1
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(step, total, schedule)
                with arithmetic(encoder.device, bf16=False):
                    one, two = encoder.embed_rows(tokens, np.concatenate([rows, rows + count]), ENCODE_TOKENS).chunk(2)
                similarity = torch.nn.functional.cosine_similarity(one, two)
                loss = torch.nn.functional.mse_loss(similarity, gold[torch.from_numpy(rows).to(gold.device)])
                if not torch.isfinite(loss):
                    raise NonFiniteLossError(step, "loss", float(loss.detach()), rows.tolist(), None)
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(loss)
                torch.nn.utils.clip_grad_norm_(encoder.parameters(), config.clip)
                optimizer.step()
                if on_progress is not None:
                    on_progress(step, total, f"loss {float(loss.detach()):.4f}")
            if dev is not None:
                score = spearman(predict(encoder, tokenizer, dev), dev.gold)
                if best is None or score > best[0]:
                    best = score, copy.deepcopy(encoder.state_dict())
    if best is not None:
        encoder.load_state_dict(best[1])
    return encoder.eval()


def predict(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, pairs: GradedPairs) -> NDArray[np.float64]:
    """Cosine of every pair, (n,), in [-1, 1]."""
    tokens = tokenise(tokenizer, [*pairs.texts_1, *pairs.texts_2], encoder.config.max_length)
    vectors = encode_tokens(encoder, tokens)
    return cosine_scores(vectors[: len(pairs.gold)], vectors[len(pairs.gold) :])


def graded_pairs(name: str, pairs: pl.DataFrame, highest: float) -> GradedPairs:
    """Rows with `sentence1`, `sentence2` and `score`, the score divided by the largest that the set knows."""
    gold = pairs["score"].to_numpy() / highest
    return GradedPairs(name, pairs["sentence1"].to_list(), pairs["sentence2"].to_list(), gold)


def _doubled(pairs: GradedPairs) -> GradedPairs:
    one, two = list(pairs.texts_1), list(pairs.texts_2)
    return GradedPairs(pairs.name, one + two, two + one, np.tile(pairs.gold, 2))


def _optimizer(encoder: Encoder, config: FinetuneConfig) -> torch.optim.Optimizer:
    learning = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.lr, eps=1e-6, fused=True)
