"""A cross-encoder: both sentences pass the transformer as one text, and its first token gives the pair's figures.

    [CLS] first [SEP] second [SEP]  ─▶ backbone ─▶ vector of [CLS] ─▶ linear ─▶ one value a class, or one

It compares no sentence vectors; it is what SBERT (Reimers and Gurevych, 2019) calls BERT in tables of fine-tuned
systems, built as UKP's code for AFS has it (argument-similarity/SigmoidBERT.py): no pooler, no dropout on [CLS].

Shapes: B pairs, T tokens (padded), N tokens of all pairs, D width, C values of a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from models.encoder.arithmetic import arithmetic
from models.encoder.encode import tokens_a_pass
from models.encoder.network import Encoder
from models.encoder.tokens import Tokens, budget_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Architectures that put two separators between the sentences of a pair; the others put one.
TWO_SEPARATORS = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer"})
SPREAD = 0.02  # standard deviation of the linear layer's first weights, as BERT's


class CrossEncoder(Encoder):
    """An encoder's transformer under a layer of its own; pooling and heads of the encoder are left behind.

    Attributes:
        head: From the vector of [CLS] to C values; starts anew.
    """

    def __init__(self, encoder: Encoder, values: int) -> None:
        config = encoder.config.model_copy(update={"pooling": "cls", "normalize": False})
        super().__init__(encoder.backbone, config)
        settings = encoder.backbone.config
        self.head = nn.Linear(self.width, values)
        nn.init.normal_(self.head.weight, std=SPREAD)
        nn.init.zeros_(self.head.bias)
        self._separators = 2 if settings.model_type in TWO_SEPARATORS else 1
        # Those of two separators tell the sentences apart by these alone, however many types their table has.
        self._typed = self._separators == 1 and int(getattr(settings, "type_vocab_size", 1)) > 1

    def values(
        self, tokens: Tokens, first: NDArray[np.int64], second: NDArray[np.int64], batch_tokens: int
    ) -> torch.Tensor:
        """What each pair comes to, before any sigmoid or softmax: (B, C), differentiable.

        Args:
            tokens: The sentences, each with its special tokens.
            first: (B,) sentence number of each pair's first sentence.
            second: (B,) of its second.
            batch_tokens: Padded tokens a forward pass of a transformer that cannot run packed.
        """
        pairs = joined(tokens, first, second, self._separators)
        return self._valued(self.embed_rows(pairs, np.arange(len(pairs)), batch_tokens))

    def scores(
        self, tokens: Tokens, first: NDArray[np.int64], second: NDArray[np.int64], *, bf16: bool = False
    ) -> NDArray[np.float64]:
        """The sigmoid of each pair's first value, (B,) in [0, 1], without dropout; arguments as in `values`."""
        pairs = joined(tokens, first, second, self._separators)
        scores, was_training = np.zeros(len(pairs)), self.training
        self.eval()
        with torch.inference_mode(), arithmetic(self.device, bf16=bf16):
            budget = tokens_a_pass(self.device)
            for part in budget_batches(pairs.lengths, budget):
                values_BC = self._valued(self.embed(pairs, part, budget))
                scores[part] = torch.sigmoid(values_BC[:, 0].double()).cpu().numpy()
        self.train(was_training)
        return scores

    def inputs(self, ids_XT: torch.Tensor, positions_XT: torch.Tensor | None) -> dict[str, torch.Tensor]:
        """Which sentence of its pair each token is of, where the transformer wants to know: 0 or 1."""
        return {"token_type_ids": sentence_numbers(ids_XT, positions_XT)} if self._typed else {}

    def _valued(self, vectors_BD: torch.Tensor) -> torch.Tensor:
        values_BC: torch.Tensor = self.head(vectors_BD)
        return values_BC


def joined(tokens: Tokens, first: NDArray[np.int64], second: NDArray[np.int64], separators: int) -> Tokens:
    """Pairs as one text each: the first sentence as it is, further separators, the second without its first token."""
    end = tokens.ids[tokens.offsets[1] - 1 : tokens.offsets[1]]
    between = np.repeat(end, separators - 1)
    parts = []
    for one, two in zip(first, second, strict=True):
        head = tokens.ids[tokens.offsets[one] : tokens.offsets[one + 1]]
        tail = tokens.ids[tokens.offsets[two] + 1 : tokens.offsets[two + 1]]
        parts.append(np.concatenate([head, between, tail]))
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Tokens(np.concatenate(parts), offsets, tokens.pad_id)


def sentence_numbers(ids_XT: torch.Tensor, positions_XT: torch.Tensor | None) -> torch.Tensor:
    """0 up to and with a text's first separator, 1 behind it.

    Args:
        ids_XT: Rows of tokens, of which the first is a whole text or several end to end: it ends with a separator.
        positions_XT: Each token's place in its text, 0 for its first; None where every row is one text.
    """
    ends_XT = (ids_XT == ids_XT[0, -1]).long()
    before_XT = ends_XT.cumsum(dim=-1) - ends_XT
    if positions_XT is None:
        return (before_XT > 0).long()
    starts_XT = torch.arange(ids_XT.shape[-1], device=ids_XT.device) - positions_XT
    return (before_XT > before_XT.gather(-1, starts_XT)).long()
