"""Which tokens a masked language model is to guess, and what it sees in their places (BERT, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.errors import EncoderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.encoder.tokenization import Tokenizer

# Shares of the chosen tokens: [MASK], any other (a special one at times); the rest stay as they are.
MASKED, RANDOM = 0.8, 0.1


@dataclass(frozen=True)
class Masking:
    """A vocabulary, as far as masks need it.

    Attributes:
        mask_id: Of [MASK].
        special: Ids of tokens that are never chosen, rising.
        size: Of the vocabulary.
    """

    mask_id: int
    special: NDArray[np.int64]
    size: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Masking:
        """What a tokenizer says.

        Raises:
            EncoderError: It has no mask token.
        """
        if tokenizer.mask_token_id is None:
            raise EncoderError(
                f"the tokenizer {type(tokenizer).__name__} has no mask token, expected one to hide words behind; start "
                "from an encoder that was trained as a masked language model"
            )
        return cls(int(tokenizer.mask_token_id), np.array(sorted(tokenizer.all_special_ids)), len(tokenizer))

    def hide(
        self, ids: NDArray[np.integer], share: float, generator: np.random.Generator
    ) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
        """Choose tokens to guess and hide them: 80 % [MASK], 10 % random, 10 % as they are.

        Args:
            ids: Token ids, of any shape.
            share: Of the tokens that are not special; one is chosen at least, if there is any.
            generator: Decides all.

        Returns:
            What the model sees, and where it is to guess; both of the shape of `ids`.
        """
        eligible = ~np.isin(ids, self.special)
        chosen = eligible & (generator.random(ids.shape) < share)
        if not chosen.any():
            chosen.flat[np.flatnonzero(eligible)[:1]] = True
        fate = generator.random(ids.shape)
        hidden = np.where(chosen & (fate < MASKED), self.mask_id, ids)
        other = generator.integers(len(self.special), self.size, ids.shape)
        return np.where(chosen & (fate >= 1 - RANDOM), other, hidden), chosen
