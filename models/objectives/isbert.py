"""IS-BERT: train a sentence's vector to distinguish its own tokens from other sentences' (Zhang et al., EMNLP 2020).

Shapes: B sentences, T tokens of the longest, N tokens of all, D width.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch.nn import functional

from bsl.models.errors import TrainingError
from bsl.models.objectives.objective import Objective, full_precision

if TYPE_CHECKING:
    import torch

    from bsl.models.encoder.network import Encoder
    from bsl.models.objectives.contrastive_config import ISBERTConfig
    from bsl.models.objectives.objective import Batch


class ISBERT(Objective):
    """Mean over tokens of sp(−x · h_own) + mean over other sentences of sp(x · h_other), sp the softplus.

    Source: Zhang et al., EMNLP 2020, equation 2, scaled as in MutualInformationLoss.py; second views are not used.

    Raises:
        TrainingError: The encoder has modules after pooling.

    Example:
        >>> objective = ISBERT(encoder, ISBERTConfig())
        >>> objective(batch).shape  # (N, D) token vectors, (B, D) sentence vectors → a scalar
        torch.Size([])
    """

    reads_tokens = ""
    counts_tokens = True

    def __init__(self, online: Encoder, config: ISBERTConfig) -> None:
        super().__init__(online, config)
        if online.sentence_heads:
            raise TrainingError(
                f"objective isbert: {online.config.model} has {len(online.sentence_heads)} modules after pooling, "
                "expected none, because the loss compares sentence vectors with token vectors. Set "
                "encoder.normalize=false, or choose an encoder without such modules."
            )

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the loss of a batch, a scalar."""
        x_BTD, mask_BT = self.online.token_vectors(batch.tokens, batch.view_1)
        sentence_N, position_N = mask_BT.nonzero(as_tuple=True)
        h_BD = self.online.pooled(x_BTD, mask_BT)
        return jensen_shannon(x_BTD[sentence_N, position_N], h_BD, sentence_N=sentence_N)


@full_precision
def jensen_shannon(x_ND: torch.Tensor, h_BD: torch.Tensor, *, sentence_N: torch.Tensor) -> torch.Tensor:
    """Return the negative Jensen-Shannon estimate of the mutual information of tokens and sentences, > −2 log 2.

    Equation 2, scaled as in MutualInformationLoss.py. The first term is the mean over tokens of softplus(−x) − log 2,
    where x is the token's product with its own sentence. The second is the mean over tokens and other sentences of
    softplus(x) − log 2; a batch of one sentence has no second term.

    Args:
        x_ND: Vectors of the tokens of all sentences, special tokens included.
        h_BD: Vectors of the sentences.
        sentence_N: Row in h of each token's sentence.
    """
    scores_NB = x_ND @ h_BD.T
    own_N1 = scores_NB.gather(1, sentence_N[:, None])
    others_NB = scores_NB.scatter(1, sentence_N[:, None], float("-inf"))  # softplus(−inf) = 0
    count, others = len(scores_NB), max(1, len(h_BD) - 1)
    negative_term = functional.softplus(others_NB).sum() / (count * others) - math.log(2) * (len(h_BD) > 1)
    return functional.softplus(-own_N1).mean() - math.log(2) + negative_term
