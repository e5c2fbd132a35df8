"""What an encoder may carry beside backbone and pooling: maps from vectors to vectors.

A head works either on token vectors, before pooling (`cnn.py`), or on sentence vectors, after it. Names of parameters
are those of sentence-transformers, so that a head's state is the content of its weights file.

Shapes: … any leading dimensions, B sentences, T tokens, N tokens of all sentences, D width of what comes in, E width of
what goes out.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping

SENTENCES = "sentence_embedding"  # what sentence-transformers calls pooled vectors
# By the names under which torch knows them; all that take no argument.
ACTIVATIONS: tuple[type[nn.Module], ...] = (
    *(nn.Identity, nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Mish, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU),
    *(nn.ReLU6, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.LogSigmoid, nn.Tanhshrink),
)


class Head(nn.Module, abc.ABC):
    """Maps vectors to vectors.

    Attributes:
        level: Which vectors it takes. Those of tokens come with zeros in place of padding.
        settings_file: Name of the file of its settings.
        saved_as: What sentence-transformers calls it, where that is not its name here.
    """

    level: ClassVar[Literal["token", "sentence"]]
    settings_file: ClassVar[str] = "config.json"
    saved_as: ClassVar[str | None] = None

    @classmethod
    @abc.abstractmethod
    def build(cls, settings: Mapping[str, Any]) -> Head:
        """The head that settings describe, its weights still to be read.

        Raises:
            KeyError: A setting is missing.
            EncoderError: A setting asks for what is not computed here.
        """

    @abc.abstractmethod
    def settings(self) -> dict[str, object]:
        """What `build` needs, in the spelling that sentence-transformers reads since 2.3; empty for no file."""

    @abc.abstractmethod
    def width_from(self, width: int) -> int:
        """E, for vectors of width D that come in.

        Raises:
            EncoderError: It takes vectors of another width.
        """

    def check_weights(self) -> None:
        """Refuse weights that have the right shape and are none of this head's.

        Raises:
            EncoderError: They are not.
        """

    def _expect(self, width: int, expected: int) -> None:
        if width != expected:
            raise EncoderError(
                f"{type(self).__name__} takes vectors of width {expected}, those before it have {width}; "
                "check that the modules belong together"
            )


class TokenHead(Head):
    """Maps token vectors to token vectors, of padded sentences or of sentences end to end."""

    level = "token"

    @abc.abstractmethod
    def packed(self, x_ND: torch.Tensor, sentence_N: torch.Tensor) -> torch.Tensor:
        """What `forward` makes of the same tokens padded, (N, E), without arithmetic for padding.

        Args:
            x_ND: Tokens of all sentences, end to end.
            sentence_N: Which sentence each is of, equal for neighbours of one sentence only.
        """


class Dense(Head):
    """A linear layer with an activation, perhaps added to what came in (x ↦ a(W·x + b) + x)."""

    level = "sentence"

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
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.activation = activation()
        self.adds = residual
        if residual and in_features != out_features:
            self.residual = nn.Linear(in_features, out_features, bias=False)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, D) to (B, E)."""
        made_BE: torch.Tensor = self.activation(self.linear(x_BD))
        if not self.adds:
            return made_BE
        kept_BE: torch.Tensor = self.residual(x_BD) if hasattr(self, "residual") else x_BD
        return made_BE + kept_BE

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Dense:
        """See `Head.build`."""
        _refuse_tokens(cls, settings)
        return cls(
            settings["in_features"],
            settings["out_features"],
            bias=settings.get("bias", True),
            activation=_activation(settings.get("activation_function")),
            residual=settings.get("use_residual", False),
        )

    def settings(self) -> dict[str, object]:
        """See `Head.settings`; older releases know no residual, so it is named only where there is one."""
        kind = type(self.activation)
        return {
            "in_features": self.linear.in_features,
            "out_features": self.linear.out_features,
            "bias": self.linear.bias is not None,
            "activation_function": f"{kind.__module__}.{kind.__name__}",
        } | ({"use_residual": True} if self.adds else {})

    def width_from(self, width: int) -> int:
        """See `Head.width_from`."""
        self._expect(width, self.linear.in_features)
        return self.linear.out_features


class Normalize(Head):
    """Scales each vector to length 1."""

    level = "sentence"

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, D), scaled."""
        return functional.normalize(x_BD, dim=-1)

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Normalize:
        """See `Head.build`."""
        _refuse_tokens(cls, settings)
        return cls()

    def settings(self) -> dict[str, object]:
        """None."""
        return {}

    def width_from(self, width: int) -> int:
        """The same."""
        return width


class Dropout(Head):
    """Zeros at random while training, as nn.Dropout draws them; else what came in."""

    level = "sentence"

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(rate)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, D), perhaps with zeros."""
        dropped_BD: torch.Tensor = self.dropout(x_BD)
        return dropped_BD

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Dropout:
        """See `Head.build`."""
        return cls(settings["dropout"])

    def settings(self) -> dict[str, object]:
        """See `Head.settings`."""
        return {"dropout": self.dropout.p}

    def width_from(self, width: int) -> int:
        """The same."""
        return width


class LayerNorm(Head):
    """Mean 0 and variance 1 over a vector's dimensions, then a learned scale and shift."""

    level = "sentence"

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dimension)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, D), normed."""
        normed_BD: torch.Tensor = self.norm(x_BD)
        return normed_BD

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> LayerNorm:
        """See `Head.build`."""
        return cls(settings["dimension"])

    def settings(self) -> dict[str, object]:
        """See `Head.settings`."""
        return {"dimension": self.norm.normalized_shape[0]}

    def width_from(self, width: int) -> int:
        """The same."""
        self._expect(width, self.norm.normalized_shape[0])
        return width


def _refuse_tokens(head: type[Head], settings: Mapping[str, Any]) -> None:
    names = {settings.get(name) or SENTENCES for name in ("module_input_name", "module_output_name")}
    if names != {SENTENCES}:
        raise EncoderError(
            f"{head.__name__} on {' and '.join(sorted(names))}, expected {SENTENCES}; choose a model that works on "
            "sentence vectors"
        )


def _activation(name: str | None) -> type[nn.Module]:
    if name is None:
        return nn.Tanh
    known = {kind.__name__: kind for kind in ACTIVATIONS}
    package, _, kind = name.rpartition(".")
    if not package.startswith("torch.nn") or kind not in known:
        raise EncoderError(
            f"Dense with the activation {name!r}, expected one of torch.nn's {', '.join(known)}; add it to "
            "models.encoder.heads.ACTIVATIONS if it takes no argument"
        )
    return known[kind]


def first_of(width: int, kept: int) -> Dense:
    """The module that leaves the first of a vector's dimensions, exactly."""
    return dense_of(torch.eye(kept, width), torch.zeros(kept))


def dense_of(weight_ED: torch.Tensor, bias_E: torch.Tensor) -> Dense:
    """The module x ↦ W x + b, in fp32."""
    with torch.device("meta"):  # draws no random numbers
        dense = Dense(weight_ED.shape[1], weight_ED.shape[0], activation=nn.Identity)
    weights = {"linear.weight": weight_ED, "linear.bias": bias_E}
    dense.load_state_dict({name: tensor.float().contiguous() for name, tensor in weights.items()}, assign=True)
    return dense
