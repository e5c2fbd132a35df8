"""TSDAE (Wang, Reimers and Gurevych, 2021): reconstruct a sentence from the vector of a damaged copy.

    damaged sentence ─▶ encoder, pooling ─▶ vector ─▶ ┐
    whole sentence, up to each token ────────────────▶ decoder: the encoder's own layers ─▶ the next token

The first view is the damaged sentence (view `deleted` of models/views/cropping.py), the second the whole one. The
decoder runs the encoder's layers causally, with attention to the vector:

    token ─▶ causal self-attention ─▶ attention to the sentence's vector ─▶ feed-forward ─▶ … ─▶ last hidden state

All weights except those of the attention to the vector are the encoder's. They are tied because the layers are the same
modules; transformers 5 no longer shares tensors between two models. So an architecture needs no decoder class in
transformers. It must run packed (models/encoder/unpadded.py), and `_FORMS` must name the end of its self-attention.

Attention to a single vector gives it weight 1 for every query, so queries and keys have no effect and no gradient. They
are omitted; outputs and gradients equal those of a full cross-attention.

Shapes: B sentences, N tokens of all, D width, S width of the vectors, H heads, d width of a head.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bsl.models.encoder.layouts import Tokens, lay_out
from bsl.models.encoder.packing import packing_of
from bsl.models.encoder.unpadded import run_packed
from bsl.models.errors import TrainingError
from bsl.models.objectives.language_modeling.masked_lm import embeddings_of, vocabulary_head
from bsl.models.objectives.objective import Objective
from bsl.models.runtime.device import gather_shares, own_share, uploaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer
    from bsl.models.objectives.language_modeling.config import TSDAEConfig
    from bsl.models.objectives.objective import Batch


class TSDAE(Objective):
    """Mean of −log p(token | earlier tokens, the damaged sentence's vector) over the tokens of the whole sentence.

    Source: Wang, Reimers and Gurevych, Findings of EMNLP 2021, equation 1. Encoder and decoder share their weights
    except those of `decoder` and `head`.

    Example:
        >>> objective = TSDAE(encoder, TSDAEConfig())
        >>> objective.on_tokenizer(tokenizer)
        >>> objective(batch).item() > 0  # (B, S) vectors, (N, D) states → a scalar
        True
    """

    data_parallel = ("online", "decoder", "head")
    changes_layers = True

    def __init__(self, online: Encoder, config: TSDAEConfig) -> None:
        """Load the head saved with the encoder, or make a new one, and make the attentions to the vector.

        Raises:
            TrainingError: The encoder's architecture has no decoder form.
        """
        super().__init__(online, config)
        self.decoder = Decoder(online.transformer, online.width)
        self.head = vocabulary_head(online.transformer)
        self._first: int | None = None

    def on_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Set the position of a sentence's first token, which depends on the padding token in some architectures.

        Raises:
            TrainingError: The encoder does not run packed.
        """
        backbone, length = self.online.transformer, self.online.config.length
        packing = packing_of(backbone, int(tokenizer.pad_token_id))
        if packing is None or packing.causal or not packing.fits(length):
            raise TrainingError(
                f"architecture {backbone.config.model_type} cannot run {length} tokens without padding, as a decoder "
                "must. Lower encoder.max_length to its attention window, or choose another encoder.model."
            )
        self._first = packing.first

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the mean cross-entropy (nats) of the next tokens of the second views, a scalar (equation 1)."""
        assert self._first is not None  # set by `on_tokenizer`
        rows = own_share(np.arange(len(batch)))
        vectors_BS = self.online.embed(batch.tokens, batch.view_1[rows])
        read, next_N = _shifted(batch.tokens.take(batch.view_2[rows]))
        states_ND, indices_N = self.decoder(self.online.transformer, read, vectors_BS, self._first)
        labels_N = uploaded(next_N[indices_N].astype(np.int64), states_ND.device)
        loss = self.head.loss(states_ND, embeddings_of(self.online.transformer), labels_N)
        count = int((batch.tokens.lengths_of(batch.view_2) - 1).sum())
        return gather_shares(loss[None]).sum() / count


def _shifted(tokens: Tokens) -> tuple[Tokens, np.ndarray]:
    """Return the sentences without their last tokens, and the next token of each remaining token, (N,)."""
    if int(tokens.lengths.min()) < 2:
        raise TrainingError(
            "objective tsdae: a sentence has only one token, expected at least [CLS] and [SEP]. Choose an encoder "
            "whose tokenizer marks the ends of sentences."
        )
    last = np.zeros(len(tokens.ids), dtype=np.bool_)
    last[tokens.offsets[1:] - 1] = True
    offsets = tokens.offsets - np.arange(len(tokens.offsets))
    return Tokens(tokens.ids[~last], offsets, tokens.pad_id), np.roll(tokens.ids, -1)[~last]


@dataclass(frozen=True)
class _Form:
    """Module paths and configuration fields for using an encoder's layers as a decoder's.

    Attributes:
        layers: Path of the layers.
        self_attention: Path, in a layer, of the module that ends its self-attention.
        dropout: Configuration field: dropout of the values added to the hidden states.
        attention_dropout: Configuration field: dropout of attention weights.
        norm: Configuration field: ε of the LayerNorm after the attention to the vector; None where layers normalise
            their input instead.
    """

    layers: str
    self_attention: str
    dropout: str
    attention_dropout: str
    norm: str | None


_BERT: Final = _Form(
    "encoder.layer", "attention", "hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps"
)
_FORMS: Final[Mapping[str, _Form]] = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "electra": _BERT,
    "modernbert": _Form("layers", "attn", "attention_dropout", "attention_dropout", None),
}
"""Architectures that have a decoder form: BERT and RoBERTa of any language, and ModernBERT, for which transformers has
no decoder."""


class VectorAttention(nn.Module):
    """A layer's attention to its sentence's vector, residual and norm included."""

    def __init__(self, width: int, backbone: PreTrainedModel, form: _Form) -> None:
        super().__init__()
        config: Any = backbone.config
        hidden = int(config.hidden_size)
        self.heads = int(config.num_attention_heads)
        bias = bool(getattr(config, "attention_bias", True))
        self.value, self.output = nn.Linear(width, hidden, bias=bias), nn.Linear(hidden, hidden, bias=bias)
        for linear in (self.value, self.output):
            nn.init.normal_(linear.weight, std=float(getattr(config, "initializer_range", 0.02)))
            if bias:
                nn.init.zeros_(linear.bias)
        self.norm = nn.Identity() if form.norm is None else nn.LayerNorm(hidden, eps=float(getattr(config, form.norm)))
        self.dropout = float(getattr(config, form.dropout))
        self.attention_dropout = float(getattr(config, form.attention_dropout))

    def forward(self, x_1ND: torch.Tensor, vectors_BS: torch.Tensor, sentence_N: torch.Tensor) -> torch.Tensor:
        """Add attention to the sentences' vectors to the hidden states (1, N, D) after self-attention."""
        value_BD = self.value(vectors_BS)
        if self.training and self.attention_dropout > 0:
            # Dropping the only attention weight means that this head of the token reads nothing.
            value_NHd = value_BD.unflatten(1, (self.heads, -1)).index_select(0, sentence_N)
            mask_NH1 = functional.dropout(torch.ones_like(value_NHd[..., :1]), self.attention_dropout)
            read_ND = self.output((value_NHd * mask_NH1).flatten(1))
        else:
            read_ND = self.output(value_BD).index_select(0, sentence_N)
        read_ND = functional.dropout(read_ND, self.dropout, self.training)
        normed: torch.Tensor = self.norm(x_1ND + read_ND)
        return normed


class Decoder(nn.Module):
    """Decoder of sentence vectors: for each encoder layer, an attention to the sentence's vector."""

    def __init__(self, backbone: PreTrainedModel, width: int) -> None:
        """Make the attentions, with weights drawn from torch's generator.

        Args:
            backbone: The transformer whose layers decode.
            width: S, width of the sentence vectors.

        Raises:
            TrainingError: The transformer's architecture has no decoder form.
        """
        super().__init__()
        form = _FORMS.get(backbone.config.model_type)
        if form is None:
            raise TrainingError(
                f"architecture {backbone.config.model_type} cannot be used as a decoder, expected one of "
                f"{', '.join(_FORMS)}. Choose another encoder.model, or an objective without a decoder."
            )
        self._form = form
        layers = attrgetter(form.layers)(backbone)
        self.attentions = nn.ModuleList(VectorAttention(width, backbone, form) for _ in layers)

    def forward(
        self,
        backbone: PreTrainedModel,
        tokens: Tokens,
        vectors_BS: torch.Tensor,
        first: int,
    ) -> tuple[torch.Tensor, NDArray[np.int64]]:
        """Decode sentences; each token attends to the tokens before it and to the sentence's vector.

        Args:
            backbone: The transformer that the decoder was made for.
            tokens: B sentences.
            vectors_BS: Their vectors, (B, S).
            first: Position id of a sentence's first token.

        Returns:
            Last hidden states (N, D), and the index of each in `tokens.ids`, (N,).
        """
        device = vectors_BS.device
        layout = lay_out(tokens, np.arange(len(tokens)), device, by_length=device.type == "cpu", causal=True)
        lengths = tokens.lengths[layout.order]
        sentence_N = uploaded(np.repeat(layout.order, lengths), device)
        indices_N = np.concatenate([np.arange(tokens.offsets[row], tokens.offsets[row + 1]) for row in layout.order])
        with self._between(backbone, vectors_BS, sentence_N):
            return run_packed(backbone, layout, first), indices_N

    @contextlib.contextmanager
    def _between(self, backbone: PreTrainedModel, vectors_BS: torch.Tensor, sentence_N: torch.Tensor) -> Iterator[None]:
        """Add each layer's attention to the vectors after its self-attention, inside the `with` block."""
        with contextlib.ExitStack() as stack:
            layers = attrgetter(self._form.layers)(backbone)
            for layer, attention in zip(layers, self.attentions, strict=True):

                def capture_attention(
                    _module: nn.Module,
                    _given: object,
                    found: tuple[torch.Tensor, object],
                    attention: nn.Module = attention,
                ) -> tuple[torch.Tensor, object]:
                    return attention(found[0], vectors_BS, sentence_N), found[1]

                module: nn.Module = attrgetter(self._form.self_attention)(layer)
                stack.callback(module.register_forward_hook(capture_attention).remove)
            yield
