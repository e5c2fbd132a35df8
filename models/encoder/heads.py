"""Pooling of token vectors into one vector per sentence, and heads: layers before or after pooling.

A head maps either token vectors, before pooling (`cnn.py`), or sentence vectors, after it. Parameters have the names
of sentence-transformers, so a head's state dict is the content of its weights file.

Shapes: … any leading dimensions, B sentences, T tokens (padded on the right), N tokens of all sentences, D input
width, E output width.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, Final

import torch
from torch import nn
from torch.nn import functional

from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from transformers.modeling_outputs import BaseModelOutput

    from models.encoder.config import Pooling

SENTENCES = "sentence_embedding"  # sentence-transformers' name for pooled vectors
TOKENS = "token_embeddings"  # sentence-transformers' name for token vectors
FIRST_LAYER = 1  # index in hidden states, where 0 is the embedding layer (SimCSE, simcse/models.py, Pooler)
LAYERS: Final[Mapping[str, tuple[int, ...]]] = {
    "first-last": (FIRST_LAYER, -1),
    "second-to-last": (-2,),
    "second-to-last-cls": (-2,),
}
"""Pooling → indices of the hidden states to average before pooling; other poolings read the last layer only."""
POOLER: Final[Pooling] = "cls-pooler"
"""`cls` through the pooler of a bare transformer. Loading turns the pooler into a head, saved as a module."""
AFTER_FIRST: Final[Pooling] = "mean-after-first"
"""The average without the first token."""
MIN_DIVISOR: Final = 1e-9  # lower bound of divisors, as in sentence-transformers: the mean of no token is zero
PLUS: Final = "+"  # joins poolings whose vectors are concatenated
# torch's activations without arguments; settings contain their class names.
ACTIVATIONS: tuple[type[nn.Module], ...] = (
    *(nn.Identity, nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Mish, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU),
    *(nn.ReLU6, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.LogSigmoid, nn.Tanhshrink),
)


class Head(nn.Module):
    """Maps vectors to vectors: those of sentences, or those of tokens if it is a `TokenHead`.

    Attributes:
        settings_file: Name of its settings file.
        saved_as: Class name in sentence-transformers; None if it is this class's name.
        fields: Settings that are both arguments and attributes of the head.
        widths: Widths of its input and output vectors; None if it maps vectors of any width to that width.
    """

    settings_file: ClassVar[str] = "config.json"
    saved_as: ClassVar[str | None] = None
    fields: ClassVar[Sequence[str]] = ()
    widths: tuple[int, int] | None = None

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Head:
        """Build the head that settings describe, before its weights are loaded.

        Raises:
            KeyError: A setting is missing.
            EncoderError: A setting asks for a computation that is not supported.
        """
        return cls(**{name: settings[name] for name in cls.fields})

    def settings(self) -> dict[str, object]:
        """Return the settings for `build`, as sentence-transformers reads them since 2.3; empty if it needs no file."""
        return {name: getattr(self, name) for name in self.fields}

    def width_from(self, width: int) -> int:
        """Return the output width E for input vectors of width D.

        Raises:
            EncoderError: The head expects vectors of another width.
        """
        expected, output = self.widths or (width, width)
        if width != expected:
            raise EncoderError(
                f"{type(self).__name__}: input vectors of width {width}, expected {expected}. Check that the modules "
                "belong to the same model."
            )
        return output

    def check_weights(self) -> None:
        """Check the values of loaded weights, whose shapes are right already.

        Raises:
            EncoderError: They are not weights of this kind of head.
        """


class TokenHead(Head, abc.ABC):
    """Maps token vectors to token vectors, zero at padding positions, for padded or concatenated sentences."""

    @abc.abstractmethod
    def packed(self, x_ND: torch.Tensor, sentence_N: torch.Tensor) -> torch.Tensor:
        """Return the token vectors (N, E) that `forward` gives for the padded sentences, without padding.

        Args:
            x_ND: Token vectors of all sentences, concatenated.
            sentence_N: Sentence number of each token; neighbouring sentences have different numbers.
        """


class Dense(Head):
    """A linear layer with an activation, optionally with a residual connection (x ↦ a(W·x + b) + x)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        activation: type[nn.Module] = nn.Tanh,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.widths = in_features, out_features
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.activation = activation()
        self.adds = residual
        if residual and in_features != out_features:
            self.residual = nn.Linear(in_features, out_features, bias=False)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Map (B, D) to (B, E)."""
        output_BE: torch.Tensor = self.activation(self.linear(x_BD))
        if not self.adds:
            return output_BE
        skip_BE: torch.Tensor = self.residual(x_BD) if hasattr(self, "residual") else x_BD
        return output_BE + skip_BE

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Dense:
        """See `Head.build`."""
        return cls(
            settings["in_features"],
            settings["out_features"],
            bias=settings.get("bias", True),
            activation=_activation(settings.get("activation_function")),
            residual=settings.get("use_residual", False),
        )

    def settings(self) -> dict[str, object]:
        """See `Head.settings`; `use_residual` is written only if true, since older releases do not know it."""
        kind = type(self.activation)
        return {
            "in_features": self.linear.in_features,
            "out_features": self.linear.out_features,
            "bias": self.linear.bias is not None,
            "activation_function": f"{kind.__module__}.{kind.__name__}",
        } | ({"use_residual": True} if self.adds else {})


class Normalize(Head):
    """Scales each vector to length 1."""

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Scale vectors (B, D) to length 1."""
        return functional.normalize(x_BD, dim=-1)


class Dropout(Head):
    """Dropout of sentence vectors in training mode, as nn.Dropout."""

    fields = ("dropout",)

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.layer = nn.Dropout(dropout)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Apply dropout to vectors (B, D)."""
        dropped_BD: torch.Tensor = self.layer(x_BD)
        return dropped_BD


class LayerNorm(Head):
    """Layer normalisation: mean 0 and variance 1 over a vector's dimensions, then a learned scale and shift."""

    fields = ("dimension",)

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension, self.widths = dimension, (dimension, dimension)
        self.norm = nn.LayerNorm(dimension)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Normalise vectors (B, D)."""
        normed_BD: torch.Tensor = self.norm(x_BD)
        return normed_BD


def _activation(name: str | None) -> type[nn.Module]:
    if name is None:
        return nn.Tanh
    known = {kind.__name__: kind for kind in ACTIVATIONS}
    package, _, kind = name.rpartition(".")
    if not package.startswith("torch.nn") or kind not in known:
        raise EncoderError(
            f"Dense: unknown activation {name!r}, expected one of torch.nn's {', '.join(known)}. Choose another model, "
            "or add the activation to models.encoder.heads.ACTIVATIONS if it takes no argument."
        )
    return known[kind]


def dense_of(weight_ED: torch.Tensor, bias_E: torch.Tensor) -> Dense:
    """Return the module x ↦ W x + b, in fp32."""
    with torch.device("meta"):  # draws no random numbers
        dense = Dense(weight_ED.shape[1], weight_ED.shape[0], activation=nn.Identity)
    weights = {"linear.weight": weight_ED, "linear.bias": bias_E}
    dense.load_state_dict({name: tensor.float().contiguous() for name, tensor in weights.items()}, assign=True)
    return dense


def token_vectors(output: BaseModelOutput, pooling: str) -> torch.Tensor:
    """Return the token vectors (B, T, D) to pool: the last layer's, or the mean over the layers in `LAYERS`.

    Args:
        output: Output of the transformer, with hidden states if pooling is one of `LAYERS`.
        pooling: As configured.
    """
    last_BTD = output.last_hidden_state
    assert last_BTD is not None
    if pooling not in LAYERS:
        return last_BTD
    assert output.hidden_states is not None
    layers = [last_BTD if layer == -1 else output.hidden_states[layer] for layer in LAYERS[pooling]]
    return torch.stack(layers).sum(dim=0) / len(layers) if len(layers) > 1 else layers[0]


def layer_weights(pooling: str, layers: int) -> torch.Tensor:
    """Return the weight of each layer for a pooling of `LAYERS`, (layers,): 1 if the layer is averaged, else 0."""
    weights = torch.zeros(layers)
    for layer in LAYERS[pooling]:
        weights[layer - FIRST_LAYER if layer > 0 else layer] = 1.0
    return weights


def pool(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, pooling: str, skipped: int = 0) -> torch.Tensor:
    """Pool token vectors to (B, D), in fp32 at least; several poolings to (B, D + D + …), in their order.

    Args:
        tokens_BTD: Token vectors; any finite values at padding positions.
        mask_BT: 1 for real tokens, special tokens included, 0 for padding; at least one real token per row.
        pooling: As configured.
        skipped: Number of tokens to skip at the beginning: a prompt that is not pooled.
    """
    tokens_BTD = precise(tokens_BTD)  # sums over tokens lose digits in bf16
    if skipped:
        mask_BT = mask_BT * (torch.arange(mask_BT.shape[1], device=mask_BT.device) >= skipped)
    functions = [_FUNCTIONS[token_pooling(part)] for part in pooling.split(PLUS)]
    vectors = [function(tokens_BTD, mask_BT, skipped) for function in functions]
    return torch.cat(vectors, dim=-1) if len(vectors) > 1 else vectors[0]


def token_pooling(pooling: str) -> str:
    """Return how a pooling combines tokens, apart from the layers that it reads: `mean` for `first-last`."""
    return {"first-last": "mean", "second-to-last": "mean", "second-to-last-cls": "cls"}.get(pooling, pooling)


def _first(tokens_BTD: torch.Tensor, _: torch.Tensor, skipped: int) -> torch.Tensor:
    return tokens_BTD[:, min(skipped, tokens_BTD.shape[1] - 1)]


def _mean(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1).clamp(min=MIN_DIVISOR)


def _mean_after_first(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, skipped: int) -> torch.Tensor:
    return _mean(tokens_BTD, torch.cat([torch.zeros_like(mask_BT[:, :1]), mask_BT[:, 1:]], dim=1), skipped)


def _mean_by_root(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    weights_BT1 = mask_BT.to(tokens_BTD.dtype).unsqueeze(-1)
    return (tokens_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1).clamp(min=MIN_DIVISOR).sqrt()


def _weighted(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    """Average tokens with weight t for token t, since later tokens of a decoder see more (SGPT, 2022, section 3)."""
    positions_T = torch.arange(1, mask_BT.shape[1] + 1, device=mask_BT.device)
    return _mean(tokens_BTD, mask_BT * positions_T, 0)


def _max(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    return tokens_BTD.masked_fill(mask_BT.unsqueeze(-1) == 0, float("-inf")).amax(dim=1)


def _last(tokens_BTD: torch.Tensor, mask_BT: torch.Tensor, _: int) -> torch.Tensor:
    positions_BT = mask_BT * torch.arange(mask_BT.shape[1], device=mask_BT.device)
    last_B1D = positions_BT.argmax(dim=1)[:, None, None].expand(-1, 1, tokens_BTD.shape[2])
    return tokens_BTD.gather(1, last_B1D)[:, 0]


_FUNCTIONS: Final[Mapping[str, Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]]] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    AFTER_FIRST: _mean_after_first,
    "mean-sqrt": _mean_by_root,
    "weighted": _weighted,
    "last": _last,
}


def precise(x: torch.Tensor) -> torch.Tensor:
    """Cast a tensor of any shape to fp32 or, if it is float64 (used by tests), leave it unchanged."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
