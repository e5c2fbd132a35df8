"""What a translator learns from: sentence pairs of one or several directions, in batches of like length.

Shapes: B examples, S source tokens, T target tokens, D width, V vocabulary, N target tokens that are no padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from models.objectives.language_modeling.linear_cross_entropy import linear_cross_entropy
from models.pretraining.batches import length_batches, pad

if TYPE_CHECKING:
    from transformers import MarianMTModel, MarianTokenizer

    from models.pretraining.translation import TranslationModelConfig

LONGEST = 100  # tokens of a side
RATIO = 4.0  # of the sides' lengths, three tokens added to each


@dataclass(frozen=True)
class EncodedPairs:
    """Token ids of one language direction, without framing."""

    sources: list[np.ndarray]
    targets: list[np.ndarray]
    prefix: int | None
    """Id of the target-language token that starts each source; none where the model has one target."""
    share: float
    """Share of the pairs drawn in each epoch; above 1, pairs repeat."""


def comparable(one: list[np.ndarray], other: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Drop pairs with a side of `LONGEST` tokens or more, or with one side `RATIO` times as long as the other."""
    kept = [
        (a, b)
        for a, b in zip(one, other, strict=True)
        if max(len(a), len(b)) < LONGEST and 1 / RATIO < (len(a) + 3) / (len(b) + 3) < RATIO
    ]
    return [a for a, _ in kept], [b for _, b in kept]


class TranslationPairs:
    """Examples over several directions with one model."""

    def __init__(
        self, directions: list[EncodedPairs], tokenizer: MarianTokenizer, config: TranslationModelConfig, seed: int
    ) -> None:
        """Hold the pairs of all directions."""
        self.directions, self.config, self.seed = directions, config, seed
        self.sources = [row for d in directions for row in d.sources]
        self.targets = [row for d in directions for row in d.targets]
        self.prefixes = np.concatenate(
            [np.full(len(d.sources), -1 if d.prefix is None else d.prefix) for d in directions]
        )
        self.lengths = np.array([len(s) + len(t) for s, t in zip(self.sources, self.targets, strict=True)])
        self.end_id, self.pad_id = int(tokenizer.eos_token_id), int(tokenizer.pad_token_id)

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Batches of (examples, 2) pair numbers: a pair and the one that follows it, or −1."""
        generator = np.random.default_rng([self.seed, epoch])
        first = self._draw(generator)
        second = self._partners(first, generator)
        lengths = self.lengths[first] + np.where(second >= 0, self.lengths[second], 0) + 3
        examples = np.stack([first, second], axis=1)
        return [examples[batch] for batch in length_batches(lengths, self.config.batch_tokens, generator)]

    def _draw(self, generator: np.random.Generator) -> np.ndarray:
        chosen: list[np.ndarray] = []
        start = 0
        for direction in self.directions:
            count = len(direction.sources)
            whole, rest = divmod(round(direction.share * count), count)
            chosen += [np.arange(start, start + count)] * whole
            chosen.append(start + generator.permutation(count)[:rest])
            start += count
        return np.concatenate(chosen)

    def _partners(self, first: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """For a share of the examples another one of the same direction, −1 for the rest."""
        ends = np.cumsum([len(d.sources) for d in self.directions])
        owner = np.searchsorted(ends, first, side="right")
        starts = ends - np.array([len(d.sources) for d in self.directions])
        partner = starts[owner] + (generator.random(len(first)) * (ends - starts)[owner]).astype(np.int64)
        return np.where(generator.random(len(first)) < self.config.joined, partner, -1)

    def loss(self, model: nn.Module, batch: np.ndarray, generator: np.random.Generator) -> tuple[Tensor, int]:  # noqa: ARG002
        """Label-smoothed cross-entropy per target token; the count is of target tokens."""
        sources = pad([self._source(*e) for e in batch], self.pad_id)
        targets = pad([self._target(*e) for e in batch], self.pad_id)
        translator: Any = model  # typed as the loop knows it; a MarianMTModel
        states_ND, labels_N = target_states(translator, sources, targets, self.pad_id)
        candidates = translator.model.shared.weight[:-1]  # the last row is <pad>: no candidate, and zero for ever
        return linear_cross_entropy(states_ND, candidates, labels_N, self.config.label_smoothing), len(labels_N)

    def _source(self, first: int, second: int) -> np.ndarray:
        prefix = [[self.prefixes[first]]] if self.prefixes[first] >= 0 else []
        rest = [self.sources[second]] if second >= 0 else []
        return np.concatenate([*prefix, self.sources[first], *rest, [self.end_id]])

    def _target(self, first: int, second: int) -> np.ndarray:
        rest = [self.targets[second]] if second >= 0 else []
        return np.concatenate([self.targets[first], *rest, [self.end_id]])


def target_states(
    model: MarianMTModel, sources_BS: np.ndarray, targets_BT: np.ndarray, pad_id: int
) -> tuple[Tensor, Tensor]:
    """The decoder's last states where there is a next target token.

    Returns:
        (N, D) states and (N,) labels of the N target tokens that are no padding.
    """
    device = next(model.parameters()).device
    sources, targets = torch.from_numpy(sources_BS).to(device), torch.from_numpy(targets_BT).to(device)
    previous = torch.cat([torch.full_like(targets[:, :1], pad_id), targets[:, :-1]], dim=1)
    outputs = model.model(input_ids=sources, attention_mask=(sources != pad_id).long(), decoder_input_ids=previous)
    real = targets != pad_id
    return outputs.last_hidden_state[real], targets[real]
