"""What an encoder may carry beside backbone and pooling: maps from vectors to vectors.

A head works either on token vectors, before pooling, or on sentence vectors, after it. Names of parameters are those
of sentence-transformers, so that a head's state is the content of its weights file.

Shapes: … any leading dimensions, B sentences, T tokens, D width of what comes in, E width of what goes out.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SENTENCES = "sentence_embedding"  # what sentence-transformers calls pooled vectors
# By the names under which torch knows them; all that take no argument.
ACTIVATIONS: tuple[type[nn.Module], ...] = (nn.Identity, nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Mish)


class Head(nn.Module, abc.ABC):
    """Maps vectors to vectors.

    Attributes:
        level: Which vectors it takes. Those of tokens come with zeros in place of padding.
        settings_file: Name of the file of its settings.
    """

    level: ClassVar[Literal["token", "sentence"]]
    settings_file: ClassVar[str] = "config.json"

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

    def _expect(self, width: int, expected: int) -> None:
        if width != expected:
            raise EncoderError(
                f"{type(self).__name__} takes vectors of width {expected}, those before it have {width}; "
                "check that the modules belong together"
            )


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


class CNN(Head):
    """Convolutions of several widths over the tokens of a sentence, side by side (IS-BERT, EMNLP 2020).

    Beyond a sentence's ends there are zeros, whatever it is padded with. sentence-transformers lets a padded batch's
    filler into the last tokens instead, so it gives these vectors for sentences of one length or one by one.
    """

    level = "token"
    settings_file = "cnn_config.json"

    def __init__(self, in_features: int, channels: int = 256, kernels: Sequence[int] = (1, 3, 5)) -> None:
        super().__init__()
        if not kernels or any(kernel % 2 == 0 for kernel in kernels):
            raise EncoderError(
                f"CNN with kernels of {list(kernels)} tokens, expected odd numbers: others leave no vector for each "
                "token; choose odd ones"
            )
        self.convs = nn.ModuleList(nn.Conv1d(in_features, channels, kernel, padding=kernel // 2) for kernel in kernels)

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """(B, T, D) to (B, T, E), E the channels of all convolutions."""
        x_BDT = x_BTD.transpose(1, 2)
        return torch.cat([conv(x_BDT) for conv in self.convs], dim=1).transpose(1, 2)

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> CNN:
        """See `Head.build`."""
        if any(stride != 1 for stride in settings.get("stride_sizes") or ()):
            raise EncoderError(
                f"CNN with strides {settings['stride_sizes']}, expected 1: others leave no vector for each token; "
                "train it again without strides"
            )
        newer = "in_embedding_dimension"
        width = settings[newer] if newer in settings else settings["in_word_embedding_dimension"]
        return cls(width, settings["out_channels"], settings["kernel_sizes"])

    def settings(self) -> dict[str, object]:
        """See `Head.settings`."""
        shapes = self._shapes()
        return {
            "in_word_embedding_dimension": shapes[0][1],
            "out_channels": shapes[0][0],
            "kernel_sizes": [kernel for _, _, kernel in shapes],
            "stride_sizes": [1] * len(shapes),
        }

    def width_from(self, width: int) -> int:
        """See `Head.width_from`."""
        shapes = self._shapes()
        self._expect(width, shapes[0][1])
        return sum(channels for channels, _, _ in shapes)

    def _shapes(self) -> list[tuple[int, ...]]:
        return [tuple(conv.get_parameter("weight").shape) for conv in self.convs]


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
