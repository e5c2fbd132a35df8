"""Masked language modelling, continued on a corpus (Devlin et al., 2019, section 3.1; Gururangan et al., 2020).

The loss does not use sentence vectors: it trains the transformer, whose states pooling turns into vectors. Each step
draws new masks from the run's numpy generator, which is saved in snapshots and in the same state in all processes.

Shapes: B sentences, N tokens of all, D width, T tokens of the longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.encoder.unpadded import Tokens
from models.errors import EncoderError
from models.objectives.language_modeling.head import embeddings_of, vocabulary_head
from models.objectives.objective import Objective
from models.runtime.device import gather_shares, own_share, uploaded

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from models.encoder.network import Encoder
    from models.encoder.static import Tokenizer
    from models.objectives.config import MaskedLMConfig
    from models.objectives.objective import Batch


# Shares of the chosen tokens: replaced by [MASK], by a random token (rarely a special one); the rest are unchanged.
MASKED, RANDOM = 0.8, 0.1


@dataclass(frozen=True)
class Masking:
    """Random masking of tokens, as in BERT.

    Attributes:
        mask_id: Id of [MASK].
        special: Ids of tokens that are never chosen, in ascending order.
        size: Size of the vocabulary.
    """

    mask_id: int
    special: NDArray[np.int64]
    size: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Masking:
        """Return the masking for a tokenizer's vocabulary.

        Raises:
            EncoderError: The tokenizer has no mask token.
        """
        if tokenizer.mask_token_id is None:
            raise EncoderError(
                f"the tokenizer {type(tokenizer).__name__} has no mask token. Start from an encoder that was trained "
                "as a masked language model."
            )
        return cls(int(tokenizer.mask_token_id), np.array(sorted(tokenizer.all_special_ids)), len(tokenizer))

    def hide(
        self, ids: NDArray[np.integer], share: float, generator: np.random.Generator
    ) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
        """Choose tokens to predict and mask them: 80 % become [MASK], 10 % a random token, 10 % are unchanged.

        Args:
            ids: Token ids, of any shape.
            share: Share of the non-special tokens to choose; at least one token is chosen, if there is any.
            generator: Makes all random choices.

        Returns:
            The ids that the model sees, and True for each token to predict; both in the shape of `ids`.
        """
        eligible = ~np.isin(ids, self.special)
        chosen = eligible & (generator.random(ids.shape) < share)
        if not chosen.any():
            chosen.flat[np.flatnonzero(eligible)[:1]] = True
        fate = generator.random(ids.shape)
        hidden = np.where(chosen & (fate < MASKED), self.mask_id, ids)
        other = generator.integers(len(self.special), self.size, ids.shape)
        return np.where(chosen & (fate >= 1 - RANDOM), other, hidden), chosen


class MaskedLM(Objective):
    """Mean of −log p(token | rest) over hidden tokens; second views are not used.

    Source: Devlin et al., NAACL 2019, section 3.1; continued on a corpus as by Gururangan et al., ACL 2020.

    Example:
        >>> objective = MaskedLM(encoder, MaskedLMConfig(share=0.15))
        >>> objective.read_vocabulary(tokenizer)
        >>> objective(batch, batch_tokens=512).item() > 0  # (N, D) states of hidden tokens → a scalar
        True
    """

    data_parallel = ("online", "head")
    config: MaskedLMConfig

    def __init__(self, online: Encoder, config: MaskedLMConfig) -> None:
        """Load the head saved with the encoder's weights, or make a new one.

        Raises:
            EncoderError: The encoder is not a transformer.
        """
        super().__init__(online, config)
        self.head = vocabulary_head(online.transformer)
        self._masking: Masking | None = None

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Set the mask token and the special tokens, which are never masked.

        Raises:
            EncoderError: The tokenizer has no mask token.
        """
        self._masking = Masking.of(tokenizer)

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """Return the mean cross-entropy (nats) of the hidden tokens of a batch's first views, a scalar."""
        shown, chosen_N, labels_N = self._hidden(batch)
        rows = own_share(np.arange(len(shown)))
        share = slice(shown.offsets[rows[0]], shown.offsets[rows[-1] + 1])
        x_BTD = self.online.last_layer(shown, rows, batch_tokens)
        lengths = shown.lengths_of(rows)
        indices_N = np.flatnonzero(np.arange(x_BTD.shape[1]) < lengths[:, None])[chosen_N[share]]
        states_ND = x_BTD.flatten(0, 1).index_select(0, uploaded(indices_N, x_BTD.device))
        labels = uploaded(labels_N[share][chosen_N[share]].astype(np.int64), x_BTD.device)
        loss = self.head.loss(states_ND, embeddings_of(self.online.transformer), labels)
        return gather_shares(loss[None]).sum() / max(1, int(chosen_N.sum()))

    def _hidden(self, batch: Batch) -> tuple[Tokens, np.ndarray, np.ndarray]:
        """Return the masked first views, True for each token to predict (N,), and the original ids (N,)."""
        assert self._masking is not None  # set by `read_vocabulary`
        views = batch.tokens.take(batch.view_1)
        # A new generator per step, seeded by the run's: every step takes the same amount from the run's generator.
        step = np.random.default_rng(np.random.randint(0, 2**32, size=4, dtype=np.uint64))  # noqa: NPY002
        hidden, chosen_N = self._masking.hide(views.ids, self.config.share, step)
        return Tokens(hidden.astype(np.int32), views.offsets, views.pad_id), chosen_N, views.ids
