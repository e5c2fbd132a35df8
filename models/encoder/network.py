"""A pretrained transformer as a sentence encoder.

Rows are sorted by length and pass without padding where the architecture allows it (packed.py), else padded in small
batches; the caller sees its own order.

Shapes: B sentences, T tokens, N tokens of all sentences, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from models.encoder.packed import first_position, lay_out, run_packed
from models.encoder.pooling import pool, token_vectors
from models.encoder.sharing import gather_shares, own_share
from models.encoder.tokens import Tokens, budget_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from models.encoder.config import EncoderConfig


class Encoder(nn.Module):
    """Transformer + pooling: token ids to sentence vectors."""

    def __init__(self, backbone: PreTrainedModel, config: EncoderConfig) -> None:
        super().__init__()
        self.backbone = backbone
        self.config = config
        self._packs: tuple[int | None] | None = None  # first_position, once known

    @property
    def width(self) -> int:
        """D, the width of a sentence vector."""
        return int(self.backbone.config.hidden_size)

    @property
    def drops(self) -> bool:
        """Whether a forward pass in training mode is random."""
        return any(isinstance(module, nn.Dropout) and module.p > 0 for module in self.modules())

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def forward(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """Sentence vectors (B, D) of padded token ids; mask is 1 for real tokens."""
        pooling = self.config.pooling
        output = self.backbone(
            input_ids=ids_BT, attention_mask=mask_BT, output_hidden_states=pooling == "first-last", return_dict=True
        )
        return self._scaled(pool(token_vectors(output, pooling), mask_BT, pooling))

    def embed_rows(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """Sentence vectors (len(rows), D) of some rows, in the order of `rows`, differentiable.

        The rows pass the network end to end without padding where the architecture allows it, else in length-sorted
        batches of `batch_tokens` padded tokens; up to rounding both equal one padded pass over all of them. Where
        several processes train together, each embeds its share.
        """
        return gather_shares(self.embed(tokens, own_share(rows), batch_tokens))

    def embed(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """As `embed_rows`, all rows by this process."""
        first = self._first_position(tokens.pad_id)
        if first is not None:
            layout = lay_out(tokens, rows, self.device, by_length=self.device.type == "cpu")
            hidden_ND, padding = run_packed(self.backbone, layout, first), layout.padding
            vectors_BD = self._scaled(pool(padding.pad(hidden_ND), padding.real.long(), self.config.pooling))
            return _in_order(vectors_BD, layout.order)
        parts = list(budget_batches(tokens.lengths_of(rows), batch_tokens))
        vectors_BD = torch.cat([self(*self._move(tokens.padded(rows[part]))) for part in parts])
        return _in_order(vectors_BD, np.concatenate(parts))

    def _scaled(self, vectors_BD: torch.Tensor) -> torch.Tensor:
        return functional.normalize(vectors_BD, dim=-1) if self.config.normalize else vectors_BD

    def _first_position(self, pad_id: int) -> int | None:
        if self.config.pooling == "first-last":
            return None  # a packed pass hands out the last layer alone
        if self._packs is None:
            self._packs = (first_position(self.backbone, pad_id, self.config.max_length),)
        return self._packs[0]

    def _move(self, pair: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return pair[0].to(self.device), pair[1].to(self.device)


def _in_order(vectors_BD: torch.Tensor, order: NDArray[np.int64]) -> torch.Tensor:
    """Undo a reordering: row i of the result is the one that `order` says was row i."""
    back = np.argsort(order, kind="stable")
    return vectors_BD.index_select(0, torch.from_numpy(back).to(vectors_BD.device))
