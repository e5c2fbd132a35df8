"""A sentence encoder: token vectors, heads on them, pooling, heads on sentence vectors.

Rows are sorted by length and pass without padding where the architecture allows it (unpadded.py), else padded in small
batches; the caller sees its own order.

Shapes: B sentences, S of them this process's share, T tokens, N tokens of all sentences, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from models.encoder.heads import AND, LAYERS, Head, Normalize, TokenHead, pool, precise, token_vectors
from models.encoder.unpadded import Tokens, budget_batches, first_position, lay_out, run_packed
from models.errors import EncoderError
from models.runtime.device import gather_shares, own_share, uploaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from transformers.modeling_outputs import BaseModelOutput

    from models.encoder.config import EncoderConfig
    from models.encoder.unpadded import Layout


class Backbone(Protocol):
    """Token ids to token vectors: a transformer, an ONNX graph or a static table.

    Attributes:
        config: Settings; `hidden_size` is the width of the vectors.
    """

    config: Any

    def __call__(
        self,
        *,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        output_hidden_states: bool,
        return_dict: bool,
        **inputs: torch.Tensor,
    ) -> BaseModelOutput:
        """Token vectors (B, T, D) of ids (B, T)."""


class Encoder(nn.Module):
    """Token ids to sentence vectors.

    Attributes:
        backbone: What gives the token vectors.
        config: How token vectors are pooled, and the longest input.
        token_heads: Applied to token vectors, in order, before pooling.
        sentence_heads: Applied to pooled vectors, in order; `Normalize` comes last if the configuration asks for it.
        skipped: Tokens at the beginning that are not pooled, those of a prompt that is to steer alone.
    """

    skipped = 0
    backbone: Backbone

    def __init__(
        self,
        backbone: Backbone,
        config: EncoderConfig,
        token_heads: Sequence[TokenHead] = (),
        sentence_heads: Sequence[Head] = (),
    ) -> None:
        """Put an encoder together.

        Raises:
            EncoderError: A head takes vectors of another width than it is given.
        """
        super().__init__()
        if config.normalize and not (sentence_heads and isinstance(sentence_heads[-1], Normalize)):
            sentence_heads = [*sentence_heads, Normalize()]
        self.backbone = backbone
        self.config = config
        self.token_heads: Sequence[TokenHead] = nn.ModuleList(token_heads)  # type: ignore[assignment]  # it is one
        self.sentence_heads: Sequence[Head] = nn.ModuleList(sentence_heads)  # type: ignore[assignment]
        self._packs: tuple[int | None] | None = None  # first_position, once known
        _ = self.width  # every head is asked

    @property
    def token_width(self) -> int:
        """D of the token vectors that are pooled."""
        width = int(self.backbone.config.hidden_size)
        for head in self.token_heads:
            width = head.width_from(width)
        return width

    @property
    def width(self) -> int:
        """D of a sentence vector."""
        width = self.token_width * (1 + self.config.pooling.count(AND))
        for head in self.sentence_heads:
            width = head.width_from(width)
        return width

    @property
    def drops(self) -> bool:
        """Whether a forward pass in training mode is random."""
        return any(isinstance(module, nn.Dropout) and module.p > 0 for module in self.modules())

    @property
    def device(self) -> torch.device:
        """Where the weights are; the CPU for an ONNX graph, which has none."""
        first = next(self.parameters(), None)
        return torch.device("cpu") if first is None else first.device

    @property
    def transformer(self) -> PreTrainedModel:
        """The backbone, where it is a transformer.

        Raises:
            EncoderError: It is a static table or an ONNX graph.
        """
        if not isinstance(self.backbone, PreTrainedModel):
            raise EncoderError(
                f"{self.config.model}: a {type(self.backbone).__name__} has no layers above its token vectors, "
                "expected a transformer; choose another encoder.model"
            )
        return self.backbone

    def with_heads(
        self, config: EncoderConfig, token_heads: Sequence[TokenHead], sentence_heads: Sequence[Head]
    ) -> Encoder:
        """The same transformer below other heads, which share weights with those here; what is skipped stays so.

        Raises:
            EncoderError: A head takes vectors of another width than it is given.
        """
        made = Encoder(self.backbone, config, token_heads, sentence_heads)
        made.skipped = self.skipped
        return made.train(self.training)

    def unscaled(self) -> Encoder:
        """The encoder without a `Normalize` that ends it: what a head that `add_head` adds is given."""
        heads = list(self.sentence_heads)
        ends = heads and isinstance(heads[-1], Normalize)
        config = self.config.model_copy(update={"normalize": False})
        return self.with_heads(config, self.token_heads, heads[:-1] if ends else heads)

    def add_head(self, head: Head) -> None:
        """Put a head behind those on sentence vectors, before a `Normalize` that ends them.

        Raises:
            EncoderError: It takes vectors of another width than it is given.
        """
        heads = list(self.sentence_heads)
        ends = [heads.pop()] if heads and isinstance(heads[-1], Normalize) else []
        self.sentence_heads = nn.ModuleList([*heads, head, *ends])  # type: ignore[assignment]  # it is one
        _ = self.width  # every head is asked

    def forward(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """Sentence vectors (B, D) of padded token ids; mask is 1 for real tokens."""
        return self.outputs(ids_BT, mask_BT)[1]

    def outputs(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The transformer's last output (B, T, D), before the heads on tokens, beside what `forward` gives."""
        output = self._output(ids_BT, mask_BT, self.config.pooling)
        assert output.last_hidden_state is not None
        x_BTD = _headed(token_vectors(output, self.config.pooling), mask_BT, self.token_heads)
        return output.last_hidden_state, self.pooled(x_BTD, mask_BT)

    def embed_rows(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """Sentence vectors (len(rows), D) of some rows, in the order of `rows`, differentiable.

        The rows pass the network end to end without padding where the architecture allows it, else in length-sorted
        batches of `batch_tokens` padded tokens; up to rounding both equal one padded pass over all of them. Where
        several processes train together, each embeds its share.
        """
        return gather_shares(self.embed(tokens, own_share(rows), batch_tokens))

    def embed(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """As `embed_rows`, all rows by this process."""
        parts, vectors = [], []
        for part, x_BTD, mask_BT in self._passes(tokens, rows, batch_tokens):
            parts.append(part)
            vectors.append(self.pooled(x_BTD, mask_BT))
        return _in_order(vectors, parts)

    def token_vectors(
        self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Token vectors as pooling sees them: x (B, T, D), differentiable, and the mask (B, T), 1 for real tokens.

        Rows and their order are those of `rows`, T is the longest of them or that of a fixed shape; padding holds
        zeros. Passes and processes are as in `embed_rows`.
        """
        mask_BT = self._mask(tokens, rows)
        x_BTD = gather_shares(_side_by_side(self._passes(tokens, own_share(rows), batch_tokens), mask_BT.shape[1]))
        return x_BTD * mask_BT[..., None], mask_BT

    def last_layer(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """The transformer's last output (B, T, D), whatever pooling and heads make of it; all rows by this process.

        Rows and T are as in `token_vectors`; padding holds anything finite.
        """
        passes = self._passes(tokens, rows, batch_tokens, last_layer=True)
        return _side_by_side(passes, int(tokens.lengths_of(rows).max()))

    def inputs(
        self,
        ids_XT: torch.Tensor,  # noqa: ARG002 - for encoders of pairs
        positions_XT: torch.Tensor | None,  # noqa: ARG002
    ) -> dict[str, torch.Tensor]:
        """What the backbone is given beside token ids and mask.

        Args:
            ids_XT: Rows of padded tokens, longest first, or one row of sentences end to end.
            positions_XT: Of such a row, each token's place in its sentence; None for padded rows.
        """
        return {}

    def _passes(
        self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int, *, last_layer: bool = False
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor, torch.Tensor]]:
        """Which of `rows`, their token vectors (B, T, D) as pooling sees them or of the last layer, and their mask."""
        pooling, heads = ("mean", ()) if last_layer else (self.config.pooling, self.token_heads)
        first = self._first_position(tokens.pad_id, pooling)
        if first is not None:
            layout = self._layout(tokens, rows)
            x_ND = run_packed(self.transformer, layout, first, **self.inputs(layout.ids, layout.positions))
            for head in heads:
                x_ND = head.packed(x_ND, layout.sentences)
            yield layout.order, layout.padding.pad(x_ND), layout.padding.real.long()
            return
        # A graph's own bound: its runs are slower in larger batches, whatever else they come with.
        bound = min(batch_tokens, getattr(self.backbone, "batch_tokens", batch_tokens))
        for part in budget_batches(tokens.lengths_of(rows), bound):
            ids_BT, mask_BT = (uploaded(x_BT, self.device) for x_BT in tokens.padded(rows[part]))
            x_BTD = token_vectors(self._output(ids_BT, mask_BT, pooling), pooling)
            yield part, _headed(x_BTD, mask_BT, heads), mask_BT

    def _layout(self, tokens: Tokens, rows: NDArray[np.int64]) -> Layout:
        made = tokens.layout(rows)
        return made or lay_out(tokens, rows, self.device, by_length=self.device.type == "cpu")

    def _mask(self, tokens: Tokens, rows: NDArray[np.int64]) -> torch.Tensor:
        """(B, T), 1 for real tokens."""
        if made := tokens.layout(rows):
            return made.padding.real.long()
        lengths_B = uploaded(tokens.lengths_of(rows), self.device)
        longest = int(tokens.lengths_of(rows).max())
        return (torch.arange(longest, device=self.device) < lengths_B[:, None]).long()

    def _output(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor, pooling: str) -> BaseModelOutput:
        return self.backbone(
            input_ids=ids_BT,
            attention_mask=mask_BT,
            output_hidden_states=pooling in LAYERS,
            return_dict=True,
            **self.inputs(ids_BT, None),
        )

    def pooled(self, x_BTD: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """Sentence vectors (B, D) of what `token_vectors` gives, in fp32 at least."""
        vectors_BD = pool(x_BTD, mask_BT, self.config.pooling, self.skipped)
        for head in self.sentence_heads:
            vectors_BD = precise(head(vectors_BD))
        return vectors_BD

    def packs(self, pad_id: int) -> bool:
        """Whether sentences pass without padding, end to end."""
        return self._first_position(pad_id, self.config.pooling) is not None

    def _first_position(self, pad_id: int, pooling: str) -> int | None:
        if pooling in LAYERS:
            return None  # a packed pass hands out the last layer alone
        if self._packs is None:
            packs = isinstance(self.backbone, PreTrainedModel)
            self._packs = (first_position(self.transformer, pad_id, self.config.length) if packs else None,)
        return self._packs[0]


def _headed(x_BTD: torch.Tensor, mask_BT: torch.Tensor, heads: Sequence[TokenHead]) -> torch.Tensor:
    for head in heads:
        x_BTD = head(x_BTD * mask_BT[..., None])
    return x_BTD


def _side_by_side(passes: Iterable[tuple[NDArray[np.int64], torch.Tensor, torch.Tensor]], longest: int) -> torch.Tensor:
    """Join passes into one (B, longest, D), in the order of the rows."""
    parts, padded = [], []
    for part, x_BTD, _ in passes:
        parts.append(part)
        padded.append(functional.pad(x_BTD, (0, 0, 0, longest - x_BTD.shape[1])))
    return _in_order(padded, parts)


def _in_order(passed: Sequence[torch.Tensor], parts: Sequence[NDArray[np.int64]]) -> torch.Tensor:
    """Join passes and undo their order: row i of the result is the one that `parts` say was row i."""
    x_BX = torch.cat(list(passed)) if len(passed) > 1 else passed[0]
    order = np.concatenate(parts)
    if (np.diff(order) == 1).all():
        return x_BX
    return x_BX.index_select(0, uploaded(np.argsort(order, kind="stable"), x_BX.device))
