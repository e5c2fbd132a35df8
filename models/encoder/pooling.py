"""One vector per sentence from its token vectors.

Shapes: B sentences, T tokens (padded), D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from models.encoder.config import Pooling


def pool(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Pool token vectors to (B, D), in fp32 at least.

    Args:
        tokens_BTD: Last hidden states; padding positions may hold anything finite.
        mask_BT: 1 for real tokens, special tokens included, 0 for padding; at least one real token a row.
        pooling: `mean` averages the real tokens (paper section 3.2); `cls` takes the first.
    """
    # Sums over tokens lose digits in bf16; float64 (used by tests) is left as it is.
    tokens_BTD = tokens_BTD.to(torch.promote_types(tokens_BTD.dtype, torch.float32))
    if pooling == "cls":
        return tokens_BTD[:, 0]
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1)
