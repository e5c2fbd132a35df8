"""A cross-encoder: the transformer reads both sentences as one text and scores the pair from the first token.

    [CLS] first [SEP] second [SEP]  ─▶ backbone ─▶ vector of [CLS] ─▶ linear ─▶ one value for each class, or one

SBERT (Reimers and Gurevych, 2019) calls this model BERT in its tables of fine-tuned systems. It follows UKP's code for
AFS (argument-similarity/SigmoidBERT.py): no pooler, no dropout on [CLS]. The maximal length covers both sentences
together, as in BERT's scripts (train.py, _truncate_seq_pair).

Shapes: B pairs, T tokens (padded), N tokens of all pairs, D width, C values of a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from bsl.models.encoder.heads import precise
from bsl.models.encoder.layouts import Tokens, budget_batches
from bsl.models.encoder.network import Encoder, tokens_per_pass
from bsl.models.runtime.device import frozen_passes, gather_shares, own_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Architectures that put two separators between the sentences of a pair; the others put one.
TWO_SEPARATORS = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer"})
SPREAD = 0.02  # standard deviation of the linear layer's initial weights, as in BERT


class CrossEncoder(Encoder):
    """An encoder's transformer with a new linear layer on [CLS], without the encoder's pooling and heads.

    Attributes:
        head: Linear layer from the vector of [CLS] to C values, newly initialised.
    """

    def __init__(self, encoder: Encoder, values: int) -> None:
        config = encoder.config.model_copy(update={"pooling": "cls", "normalize": False})
        super().__init__(encoder.backbone, config)
        self.equal_lengths = encoder.equal_lengths
        settings = encoder.transformer.config
        self.head = nn.Linear(self.width, values)
        nn.init.normal_(self.head.weight, std=SPREAD)
        nn.init.zeros_(self.head.bias)
        self._separators = 2 if settings.model_type in TWO_SEPARATORS else 1
        # Architectures with two separators mark the second sentence by these alone, even with several token types.
        self._typed = self._separators == 1 and int(getattr(settings, "type_vocab_size", 1)) > 1

    def values(self, tokens: Tokens, first: NDArray[np.int64], second: NDArray[np.int64]) -> torch.Tensor:
        """Return the logits of each pair, (B, C), differentiable.

        In distributed training each process computes its share of the pairs.

        Args:
            tokens: The sentences, each with its special tokens.
            first: (B,) row in `tokens` of each pair's first sentence.
            second: (B,) row of its second sentence.
        """
        share = own_share(np.arange(len(first)))
        pairs = self._joined(tokens, first[share], second[share])
        # The head runs before the gather, so that its gradients too are summed over the processes.
        return gather_shares(self._valued(self.embed(pairs, np.arange(len(pairs)))))

    def pair_scores(
        self,
        tokens: Tokens,
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        similarity: object = None,  # noqa: ARG002 - there are no vectors to compare
        *,
        bf16: bool = False,
    ) -> NDArray[np.float64]:
        """Return the sigmoid of each pair's first logit, (B,) in [0, 1], without dropout; arguments as in `values`."""
        pairs = self._joined(tokens, first, second)
        scores = np.zeros(len(pairs))
        with frozen_passes(self, self.device, bf16=bf16):
            budget = tokens_per_pass(self.device)
            for part in budget_batches(pairs.lengths, budget):
                values_BC = self._valued(self.embed(pairs, part, budget))
                scores[part] = torch.sigmoid(values_BC[:, 0].double()).cpu().numpy()
        return scores

    def inputs(self, ids_XT: torch.Tensor, positions_XT: torch.Tensor | None) -> dict[str, torch.Tensor]:
        """Return `token_type_ids` if the transformer uses them: 0 for the first sentence's tokens, 1 for the second."""
        return {"token_type_ids": sentence_numbers(ids_XT, positions_XT)} if self._typed else {}

    def _joined(self, tokens: Tokens, first: NDArray[np.int64], second: NDArray[np.int64]) -> Tokens:
        return joined(tokens, first, second, self._separators, self.config.length)

    def _valued(self, vectors_BD: torch.Tensor) -> torch.Tensor:
        return precise(self.head(vectors_BD))


def joined(
    tokens: Tokens, first: NDArray[np.int64], second: NDArray[np.int64], separators: int, longest: int
) -> Tokens:
    """Join each pair into one text of at most `longest` tokens: [CLS] first [SEP] … second [SEP].

    Longer pairs are truncated token by token at the end of the longer sentence; at equal length, of the second.

    Args:
        tokens: The sentences, each between [CLS] and [SEP].
        first: (B,) row in `tokens` of each pair's first sentence.
        second: (B,) row of its second sentence.
        separators: Number of [SEP] between the two.
        longest: Maximal length of a pair in tokens, special tokens included.
    """
    end = tokens.ids[tokens.offsets[1] - 1 : tokens.offsets[1]]
    between = np.repeat(end, separators)
    room = longest - separators - 2
    ones_B, twos_B = (tokens.lengths_of(rows) - 2 for rows in (first, second))  # without [CLS] and [SEP]
    kept_1B = np.minimum(ones_B, np.maximum(room - twos_B, (room + 1) // 2))
    kept_2B = np.minimum(twos_B, np.maximum(room - ones_B, room // 2))
    pairs = []
    for one, two, kept_1, kept_2 in zip(first, second, kept_1B, kept_2B, strict=True):
        start, middle = tokens.offsets[one], tokens.offsets[two] + 1
        parts = tokens.ids[start : start + 1 + kept_1], between, tokens.ids[middle : middle + kept_2], end
        pairs.append(np.concatenate(parts))
    return Tokens.of(pairs, tokens.pad_id)


def sentence_numbers(ids_XT: torch.Tensor, positions_XT: torch.Tensor | None) -> torch.Tensor:
    """Return token types: 0 up to a text's first separator, the separator included, and 1 after it.

    Args:
        ids_XT: Rows of token ids. The first row must end with a separator, so it is one unpadded text or several
            concatenated ones.
        positions_XT: Position of each token in its text, from 0; None if every row is one text.
    """
    ends_XT = (ids_XT == ids_XT[0, -1]).long()
    before_XT = ends_XT.cumsum(dim=-1) - ends_XT
    if positions_XT is None:
        return (before_XT > 0).long()
    starts_XT = torch.arange(ids_XT.shape[-1], device=ids_XT.device) - positions_XT
    return (before_XT > before_XT.gather(-1, starts_XT)).long()
