"""The network of a sentence encoder: backbone, heads on token vectors, pooling, heads on sentence vectors.

Sentences are sorted by length and run without padding where the architecture allows it (unpadded.py), else padded in
small batches; results are in the caller's order.

Shapes: B sentences, S of them this process's share, T tokens, N tokens of all sentences, D width.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from bsl.models.encoder.heads import Head, Normalize, TokenHead, precise
from bsl.models.encoder.layouts import Tokens, budget_batches, lay_out
from bsl.models.encoder.packing import Packing, packing_of
from bsl.models.encoder.padding_test import batches_of_equal_length
from bsl.models.encoder.pooling import POOLINGS, Pooling, pooling_of
from bsl.models.encoder.prompts import prompt_length
from bsl.models.encoder.transformer import rounded_copy
from bsl.models.encoder.unpadded import run_packed
from bsl.models.errors import EncoderError, NoEmbeddingError
from bsl.models.runtime.device import Download, frozen_passes, gather_shares, own_share, prefetch_one, uploaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from transformers.modeling_outputs import BaseModelOutput

    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.onnx import OnnxBackbone
    from bsl.models.encoder.prompts import Role
    from bsl.models.encoder.static import StaticTable, Tokenizer
    from bsl.models.runtime.progress import OnProgress


Backbone: TypeAlias = "PreTrainedModel | OnnxBackbone | StaticTable"
"""Maps token ids to token vectors; its `config.hidden_size` is their width."""
CPU_TOKENS, GPU_TOKENS = 1024, 131_072
"""Padded tokens per forward pass without gradients; on a CPU faster than 4,096."""
REPORT_EVERY: Final = 50  # forward passes between two progress reports
CPU_STEP_TOKENS, GPU_STEP_TOKENS = 512, 1 << 20
"""Padded tokens per forward pass in training, if the encoder cannot run packed; they affect rounding, so they are not
settings."""
LARGE_GROUP: Final = 256
"""Mean number of sentences per length from which a GPU is faster if it processes each length separately."""


class Encoder(nn.Module):
    """Maps token ids to sentence vectors.

    Attributes:
        backbone: Maps token ids to token vectors.
        config: Pooling, maximal length and other settings.
        token_heads: Applied to token vectors, in order, before pooling.
        sentence_heads: Applied to pooled vectors, in order; the last is `Normalize` if the configuration asks for it.
        pools_prompt: Whether the tokens of a prompt are pooled.
        roles_not_loaded: Roles whose texts the folder has other modules for, which are not loaded.
        prompt_tokens_skipped: Number of the prompt's tokens that are not pooled.
        equal_lengths: Whether only sentences of equal length share a batch, because the backbone reads padding.
    """

    pools_prompt = True
    roles_not_loaded: tuple[Role, ...] = ()
    prompt_tokens_skipped = 0
    equal_lengths = False
    backbone: Backbone

    def __init__(
        self,
        backbone: Backbone,
        config: EncoderConfig,
        token_heads: Sequence[TokenHead] = (),
        sentence_heads: Sequence[Head] = (),
    ) -> None:
        """Assemble an encoder from a backbone and heads.

        Raises:
            EncoderError: A head expects vectors of another width than it gets.
        """
        super().__init__()
        if config.normalize and not (sentence_heads and isinstance(sentence_heads[-1], Normalize)):
            sentence_heads = [*sentence_heads, Normalize()]
        self.backbone = backbone
        self.config = config
        self.token_heads: Sequence[TokenHead] = nn.ModuleList(token_heads)  # type: ignore[assignment]  # it is one
        self.sentence_heads: Sequence[Head] = nn.ModuleList(sentence_heads)  # type: ignore[assignment]
        self._tried: list[Packing | None] = []  # result of `packing_of`, after the first call; shared with copies
        _ = self.width  # checks the input width of every head

    @property
    def pooling(self) -> Pooling:
        """The configured pooling."""
        return pooling_of(self.config.pooling)

    @property
    def token_width(self) -> int:
        """Width D of the token vectors that are pooled."""
        width = int(self.backbone.config.hidden_size)
        for head in self.token_heads:
            width = head.width_from(width)
        return width

    @property
    def width(self) -> int:
        """Width D of a sentence vector."""
        width = self.token_width * len(self.pooling.modes)
        for head in self.sentence_heads:
            width = head.width_from(width)
        return width

    @property
    def has_dropout(self) -> bool:
        """Whether the network has dropout, so that a forward pass in training mode is random."""
        return any(isinstance(module, nn.Dropout) and module.p > 0 for module in self.modules())

    @property
    def device(self) -> torch.device:
        """Device of the weights; the CPU for an ONNX graph, which has no weights here."""
        first = next(self.parameters(), None)
        return torch.device("cpu") if first is None else first.device

    @property
    def transformer(self) -> PreTrainedModel:
        """The backbone, which must be a transformer.

        Raises:
            EncoderError: It is a static table or an ONNX graph.
        """
        if not isinstance(self.backbone, PreTrainedModel):
            raise EncoderError(
                f"{self.config.model}: encoder of the type {type(self.backbone).__name__}, expected a transformer. "
                "Choose another encoder.model."
            )
        return self.backbone

    def with_heads(
        self, config: EncoderConfig, token_heads: Sequence[TokenHead], sentence_heads: Sequence[Head]
    ) -> Encoder:
        """Return an encoder of the same backbone and mode with other heads; weights are shared, not copied.

        Raises:
            EncoderError: A head expects vectors of another width than it gets.
        """
        encoder = Encoder(self.backbone, config, token_heads, sentence_heads)
        encoder._tried = self._tried
        return self._with_state(encoder)

    def rounded(self, pad_id: int) -> Encoder:
        """Return an encoder for frozen passes on an NVIDIA GPU: the transformer is a `rounded_copy`, heads are shared.

        Args:
            pad_id: Id of the padding token.
        """
        backbone = self.backbone
        if not isinstance(backbone, PreTrainedModel):
            return self
        self.supports_packing(pad_id)  # known before the copy, because the test needs fp32
        encoder = Encoder(rounded_copy(backbone), self.config, self.token_heads, self.sentence_heads)
        encoder._tried = self._tried
        return self._with_state(encoder)

    def _with_state(self, encoder: Encoder) -> Encoder:
        encoder.pools_prompt, encoder.prompt_tokens_skipped = self.pools_prompt, self.prompt_tokens_skipped
        encoder.roles_not_loaded = self.roles_not_loaded
        encoder.equal_lengths = self.equal_lengths
        return encoder.train(self.training)

    def with_prompt(self, prompt: str, tokenizer: Tokenizer) -> Encoder:
        """Return the encoder for texts with another prompt; weights are shared, not copied.

        Raises:
            EncoderError: The prompt is not pooled, and the maximal length leaves no token for the text.
        """
        config = self.config.model_copy(update={"prompt": prompt})
        if self.pools_prompt or not prompt:
            skipped = 0
        elif (skipped := prompt_length(tokenizer, prompt)) >= config.length:
            raise EncoderError(
                f"{config.model}: its prompt has {skipped} tokens, which are not pooled; the maximal length of "
                f"{config.length} tokens leaves none for the text. Raise encoder.max_length, or give a shorter prompt."
            )
        encoder = self.with_heads(config, self.token_heads, self.sentence_heads)
        encoder.prompt_tokens_skipped = skipped
        return encoder

    def without_normalize(self) -> Encoder:
        """Return the encoder without a final `Normalize`."""
        heads = list(self.sentence_heads)
        normalizes = heads and isinstance(heads[-1], Normalize)
        config = self.config.model_copy(update={"normalize": False})
        return self.with_heads(config, self.token_heads, heads[:-1] if normalizes else heads)

    def encode(
        self,
        tokens: Tokens,
        *,
        batch_tokens: int | None = None,
        device: str | torch.device | None = None,
        bf16: bool = False,
        on_progress: OnProgress | None = None,
    ) -> NDArray[np.float32]:
        """Embed tokenised texts without dropout: (n, D) float32; arguments as in `SentenceEncoder.encode`.

        `batch_tokens` is the number of padded tokens per forward pass; None for the device's default.
        """
        vectors = np.zeros((len(tokens), self.width), dtype=np.float32)
        finite, done = np.ones(len(tokens), dtype=bool), 0
        if device is not None:
            self.to(device)
        budget = batch_tokens or tokens_per_pass(self.device)
        with frozen_passes(self, self.device, bf16=bf16):
            frozen = self.rounded(tokens.pad_id) if bf16 and self.device.type == "cuda" else self
            passes = (
                (rows, Download(frozen.embed(tokens, rows, budget))) for rows in budget_batches(tokens.lengths, budget)
            )
            for number, (rows, embedded) in enumerate(prefetch_one(passes), start=1):
                vectors[rows] = embedded.numpy()
                finite[rows] = np.isfinite(embedded.numpy()).all(axis=1)
                done += len(rows)
                if on_progress is not None and (number % REPORT_EVERY == 0 or done == len(tokens)):
                    on_progress(done, len(tokens), f"longest row {int(tokens.lengths[rows].max())} tokens")
        if len(bad := np.flatnonzero(~finite)):
            raise NoEmbeddingError(
                int(bad[0]),
                f"has an embedding that is not finite ({len(bad)} of {len(finite)} texts): the weights are broken, or "
                "bf16 overflowed. Check the training log, or encode in fp32.",
            )
        return vectors

    def encode_pairs(
        self, tokens: Tokens, first: NDArray[np.int64], second: NDArray[np.int64], *, bf16: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors (B, D) of both sentences of B pairs, given as rows of `tokens`; each is embedded once."""
        rows, numbers = np.unique(np.concatenate([first, second]), return_inverse=True)
        vectors = self.encode(tokens.take(rows), bf16=bf16)
        return vectors[numbers[: len(first)]], vectors[numbers[len(first) :]]

    def pair_scores(
        self,
        tokens: Tokens,
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        similarity: Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float64]],
        *,
        bf16: bool = False,
    ) -> NDArray[np.float64]:
        """Return the similarity of each pair's vectors, (…, B), without dropout.

        Args:
            tokens: The sentences; each is embedded once.
            first: (B,) row in `tokens` of each pair's first sentence.
            second: (B,) row of its second sentence.
            similarity: Vectors (B, D) of both sentences → (…, B).
            bf16: Compute the forward pass in bf16.
        """
        return similarity(*self.encode_pairs(tokens, first, second, bf16=bf16))

    def forward(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """Return sentence vectors (B, D) of padded token ids; the mask is 1 for real tokens."""
        return self.outputs(ids_BT, mask_BT)[1]

    def outputs(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the backbone's last layer (B, T, D), before the heads on tokens, and the vectors of `forward`."""
        output = self._output(ids_BT, mask_BT, self.pooling)
        assert output.last_hidden_state is not None
        x_BTD = _headed(self.pooling.token_vectors(output), mask_BT, self.token_heads)
        return output.last_hidden_state, self.pooled(x_BTD, mask_BT)

    def embed_rows(self, tokens: Tokens, rows: NDArray[np.int64]) -> torch.Tensor:
        """Return sentence vectors (len(rows), D) of some rows, in the order of `rows`, differentiable.

        The rows run concatenated without padding where the architecture allows it, else in length-sorted batches; up to
        rounding both equal one padded pass over all rows. In distributed training each process embeds its share.
        """
        return gather_shares(self.embed(tokens, own_share(rows)))

    def embed(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int | None = None) -> torch.Tensor:
        """As `embed_rows`, but this process embeds all rows, in batches of `batch_tokens` padded tokens."""
        parts, vectors = [], []
        for part, x_BTD, mask_BT in self._passes(tokens, rows, batch_tokens):
            parts.append(part)
            vectors.append(self.pooled(x_BTD, mask_BT))
        return _in_order(vectors, parts)

    def token_vectors(self, tokens: Tokens, rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the token vectors to pool (B, T, D), differentiable, and the mask (B, T), 1 for real tokens.

        Row i belongs to `rows[i]`; T is the longest row's length or that of a fixed shape; padding positions are zero.
        Batches and processes are as in `embed_rows`.
        """
        mask_BT = self._mask(tokens, rows)
        x_BTD = gather_shares(_side_by_side(self._passes(tokens, own_share(rows)), mask_BT.shape[1]))
        return x_BTD * mask_BT[..., None], mask_BT

    def last_layer(self, tokens: Tokens, rows: NDArray[np.int64]) -> torch.Tensor:
        """Return the backbone's last layer (B, T, D), before heads and pooling; this process computes all rows.

        Row i belongs to `rows[i]`, T is the longest row's length; padding positions have any finite values.
        """
        passes = self._passes(tokens, rows, last_layer=True)
        return _side_by_side(passes, int(tokens.lengths_of(rows).max()))

    def inputs(
        self,
        ids_XT: torch.Tensor,  # noqa: ARG002 - for encoders of pairs
        positions_XT: torch.Tensor | None,  # noqa: ARG002
    ) -> dict[str, torch.Tensor]:
        """Return further inputs of the backbone, besides token ids and mask; subclasses override this.

        Args:
            ids_XT: Rows of padded token ids, longest first, or one row of concatenated sentences.
            positions_XT: Position of each token in its sentence for concatenated sentences; None for padded rows.
        """
        return {}

    def _passes(
        self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int | None = None, *, last_layer: bool = False
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor, torch.Tensor]]:
        """Yield indices into `rows`, their token vectors (B, T, D) to pool or of the last layer, and their mask."""
        pooling, heads = (POOLINGS["mean"], ()) if last_layer else (self.pooling, self.token_heads)
        packing, layout = self._packing(tokens.pad_id, pooling), tokens.layout(rows)
        if packing is not None and (layout is not None or self._may_pack(packing, tokens, rows)):
            device, causal = self.device, packing.causal
            layout = layout or lay_out(tokens, rows, device, by_length=self._by_length(tokens, rows), causal=causal)
            with self._arithmetic():
                inputs = self.inputs(layout.ids, layout.positions)
                x_ND = run_packed(self.transformer, layout, packing.first, **inputs)
            for head in heads:
                x_ND = head.packed(x_ND, layout.sentences)
            yield layout.order, layout.padding.pad(x_ND), layout.padding.real.long()
            return
        # An ONNX graph sets its own bound, since larger batches make it slower.
        bound = batch_tokens or (CPU_STEP_TOKENS if self.device.type == "cpu" else GPU_STEP_TOKENS)
        bound = min(bound, getattr(self.backbone, "batch_tokens", bound))
        batches = batches_of_equal_length if self.equal_lengths else budget_batches
        for part in batches(tokens.lengths_of(rows), bound):
            ids_BT, mask_BT = (uploaded(x_BT, self.device) for x_BT in tokens.padded(rows[part]))
            x_BTD = pooling.token_vectors(self._output(ids_BT, mask_BT, pooling))
            yield part, _headed(x_BTD, mask_BT, heads), mask_BT

    def _by_length(self, tokens: Tokens, rows: NDArray[np.int64]) -> bool:
        """Return whether attention processes sentences of each length separately."""
        if self.device.type != "cuda":
            return self.device.type == "cpu"
        return len(rows) >= LARGE_GROUP * len(np.unique(tokens.lengths_of(rows)))

    def _mask(self, tokens: Tokens, rows: NDArray[np.int64]) -> torch.Tensor:
        """Return the mask (B, T), 1 for real tokens."""
        if layout := tokens.layout(rows):
            return layout.padding.real.long()
        lengths_B = uploaded(tokens.lengths_of(rows), self.device)
        longest = int(tokens.lengths_of(rows).max())
        return (torch.arange(longest, device=self.device) < lengths_B[:, None]).long()

    def _output(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor, pooling: Pooling) -> BaseModelOutput:
        with self._arithmetic():
            output: BaseModelOutput = self.backbone(
                input_ids=ids_BT,
                attention_mask=mask_BT,
                output_hidden_states=pooling.reads_all_layers,
                return_dict=True,
                **self.inputs(ids_BT, None),
            )
        return output

    def _arithmetic(self) -> contextlib.AbstractContextManager[object]:
        """Switch autocast off for a transformer with weights in bf16, which needs none."""
        rounded = isinstance(self.backbone, PreTrainedModel) and self.backbone.dtype == torch.bfloat16
        return torch.autocast(self.device.type, enabled=False) if rounded else contextlib.nullcontext()

    def pooled(self, x_BTD: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """Pool token vectors (B, T, D) and apply the sentence heads: (B, D), in fp32 at least."""
        vectors_BD = self.pooling.pool(x_BTD, mask_BT, self.prompt_tokens_skipped)
        for head in self.sentence_heads:
            vectors_BD = precise(head(vectors_BD))
        return vectors_BD

    def supports_packing(self, pad_id: int) -> bool:
        """Return whether all sentences run without padding, concatenated, and tokens attend to all of their sentence.

        That is what layouts of fixed shapes need.
        """
        packing = self._packing(pad_id, self.pooling)
        return packing is not None and not packing.causal and packing.fits(self.config.length)

    def _packing(self, pad_id: int, pooling: Pooling) -> Packing | None:
        if pooling.reads_all_layers or self.equal_lengths:
            return None  # a packed pass returns the last layer only
        if not self._tried:
            can = isinstance(self.backbone, PreTrainedModel)
            self._tried.append(packing_of(self.transformer, pad_id) if can else None)
        return self._tried[0]

    def _may_pack(self, packing: Packing, tokens: Tokens, rows: NDArray[np.int64]) -> bool:
        if not packing.fits(int(tokens.lengths_of(rows).max(initial=0))):
            return False
        # Architectures that count positions from the padding id + 1 give that token itself no position.
        return not (packing.first and len(tokens.with_pad) and np.isin(rows, tokens.with_pad).any())


def tokens_per_pass(device: torch.device) -> int:
    """Return the number of padded tokens per forward pass without gradients on a device."""
    return CPU_TOKENS if device.type == "cpu" else GPU_TOKENS


def _headed(x_BTD: torch.Tensor, mask_BT: torch.Tensor, heads: Sequence[TokenHead]) -> torch.Tensor:
    for head in heads:
        x_BTD = head(x_BTD * mask_BT[..., None])
    return x_BTD


def _side_by_side(passes: Iterable[tuple[NDArray[np.int64], torch.Tensor, torch.Tensor]], longest: int) -> torch.Tensor:
    """Concatenate batches into (B, longest, D), in the order of the rows."""
    parts, padded = [], []
    for part, x_BTD, _ in passes:
        parts.append(part)
        padded.append(functional.pad(x_BTD, (0, 0, 0, longest - x_BTD.shape[1])))
    return _in_order(padded, parts)


def _in_order(batches: Sequence[torch.Tensor], parts: Sequence[NDArray[np.int64]]) -> torch.Tensor:
    """Concatenate batches and restore the row order: `parts` has the row numbers of each batch."""
    x_BX = torch.cat(list(batches)) if len(batches) > 1 else batches[0]
    order = np.concatenate(parts)
    if (np.diff(order) == 1).all():
        return x_BX
    return x_BX.index_select(0, uploaded(np.argsort(order, kind="stable"), x_BX.device))
