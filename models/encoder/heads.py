"""Heads: layers before or after pooling.

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

from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SENTENCES: Final = "sentence_embedding"  # sentence-transformers' name for pooled vectors
TOKENS: Final = "token_embeddings"  # sentence-transformers' name for token vectors
VECTOR_NAMES: Final = ("module_input_name", "module_output_name")  # settings of the vectors that a module maps
# torch's activations without arguments; settings contain their class names.
ACTIVATIONS: tuple[type[nn.Module], ...] = (
    *(nn.Identity, nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Mish, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU),
    *(nn.ReLU6, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.LogSigmoid, nn.Tanhshrink),
)


class Head(nn.Module):
    """Maps vectors to vectors: those of sentences, or those of tokens if it is a `TokenHead`.

    A head is a module of a sentence-transformers folder, and its class says everything about it. To add one, write its
    class and add it to `HEADS` in serialization/modules.py. Its state dict is the content of its weights file.

    Attributes:
        settings_file: Name of its settings file.
        saved_as: Class name in sentence-transformers; None if it is this class's name.
        vectors: Vectors that it maps, by their name in sentence-transformers.
        after: Modules that it may directly follow; `TOKENS` and `SENTENCES` are all heads on these vectors.
        fields: Settings that are both arguments and attributes of the head.
        known: Settings that it reads, all others are refused; the `fields` unless it says more.
        widths: Widths of its input and output vectors; None if it maps vectors of any width to that width.
    """

    settings_file: ClassVar[str] = "config.json"
    saved_as: ClassVar[str | None] = None
    vectors: ClassVar[str] = SENTENCES
    after: ClassVar[Sequence[str]] = ("Pooling", "StaticEmbedding", SENTENCES)
    fields: ClassVar[Sequence[str]] = ()
    known: ClassVar[Sequence[str]] = ()
    widths: tuple[int, int] | None = None

    @classmethod
    def matches(cls, settings: Mapping[str, Any]) -> bool:  # noqa: ARG003 - for classes that share `saved_as`
        """Return whether a saved module of the class `saved_as` is this head."""
        return True

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

    vectors = TOKENS
    after = ("Transformer", "WordEmbeddings", "WeightedLayerPooling", TOKENS)

    @abc.abstractmethod
    def packed(self, x_ND: torch.Tensor, sentence_N: torch.Tensor) -> torch.Tensor:
        """Return the token vectors (N, E) that `forward` gives for the padded sentences, without padding.

        Args:
            x_ND: Token vectors of all sentences, concatenated.
            sentence_N: Sentence number of each token; neighbouring sentences have different numbers.
        """


class Dense(Head):
    """A linear layer with an activation, optionally with a residual connection (x ↦ a(W·x + b) + x)."""

    known = ("in_features", "out_features", "bias", "activation_function", "use_residual")

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
    def matches(cls, settings: Mapping[str, Any]) -> bool:
        """Return whether the layer maps other vectors than those of tokens."""
        return not maps_tokens(settings)

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


def maps_tokens(settings: Mapping[str, Any]) -> bool:
    """Return whether a module's settings name token vectors as its input and output."""
    return all(settings.get(name) == TOKENS for name in VECTOR_NAMES)


def _activation(name: str | None) -> type[nn.Module]:
    if name is None:
        return nn.Tanh
    known = {kind.__name__: kind for kind in ACTIVATIONS}
    package, _, kind = name.rpartition(".")
    if not package.startswith("torch.nn") or kind not in known:
        raise EncoderError(
            f"Dense: unknown activation {name!r}, expected one of torch.nn's {', '.join(known)}. Choose another model, "
            "or add the activation to bsl.models.encoder.heads.ACTIVATIONS if it takes no argument."
        )
    return known[kind]


def dense_of(weight_ED: torch.Tensor, bias_E: torch.Tensor) -> Dense:
    """Return the module x ↦ W x + b, in fp32."""
    with torch.device("meta"):  # draws no random numbers
        dense = Dense(weight_ED.shape[1], weight_ED.shape[0], activation=nn.Identity)
    weights = {"linear.weight": weight_ED, "linear.bias": bias_E}
    dense.load_state_dict({name: tensor.float().contiguous() for name, tensor in weights.items()}, assign=True)
    return dense


def precise(x: torch.Tensor) -> torch.Tensor:
    """Cast a tensor of any shape to fp32 or, if it is float64 (used by tests), leave it unchanged."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
