"""Convolutions over token vectors, as IS-BERT puts them between BERT and pooling (Zhang et al., EMNLP 2020, §3.2).

Over concatenated sentences a convolution is one matrix product: each token's window is gathered into one row, with
zeros beyond the ends of its sentence. So padding costs no arithmetic, and no window reaches into another sentence.

Shapes: B sentences, T tokens, N tokens of all sentences, K tokens of a window, D input width, E output width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from bsl.models.encoder.config import CNNConfig
from bsl.models.encoder.heads import TOKENS, VECTOR_NAMES, Dense, TokenHead, maps_tokens
from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.models.encoder.network import Encoder


class CNN(TokenHead):
    """Convolutions of several kernel sizes over a sentence's tokens, their outputs concatenated.

    Positions beyond a sentence's ends count as zeros. Unlike in sentence-transformers, padding is not
    convolved; the vectors agree for batches of equal length.

    Attributes:
        in_features: Input width.
        channels: Output features of each convolution.
        kernels: Kernel size of each convolution, in tokens.
    """

    settings_file = "cnn_config.json"
    known = ("in_embedding_dimension", "in_word_embedding_dimension", "out_channels", "kernel_sizes", "stride_sizes")

    def __init__(self, in_features: int, channels: int = 256, kernels: Sequence[int] = (1, 3, 5)) -> None:
        super().__init__()
        self.channels, self.kernels = channels, tuple(kernels)
        self.widths = in_features, channels * len(self.kernels)
        self.in_features = in_features
        if not kernels or any(kernel % 2 == 0 for kernel in kernels):
            raise EncoderError(
                f"CNN: kernels {list(kernels)}, expected odd sizes, which give one vector per token. Choose odd sizes."
            )
        self.convs = nn.ModuleList(nn.Conv1d(in_features, channels, kernel, padding=kernel // 2) for kernel in kernels)

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """Map (B, T, D) to (B, T, E), where E is the sum of the convolutions' channels."""
        x_BDT = x_BTD.transpose(1, 2)
        return torch.cat([conv(x_BDT) for conv in self.convs], dim=1).transpose(1, 2)

    def packed(self, x_ND: torch.Tensor, sentence_N: torch.Tensor) -> torch.Tensor:
        """See `TokenHead.packed`."""
        padded_MD = functional.pad(x_ND, (0, 0, 0, 1))  # row N: zeros
        outputs = []
        for conv in self.convs:
            weight_CDK, bias_C = conv.get_parameter("weight"), conv.get_parameter("bias")
            reach = weight_CDK.shape[2] // 2
            rows = neighbours(sentence_N, reach).flatten()
            windows = padded_MD.index_select(0, rows).view(len(x_ND), -1) if reach else x_ND  # (N, K · D)
            outputs.append(functional.linear(windows, weight_CDK.transpose(1, 2).flatten(1), bias_C))
        return torch.cat(outputs, dim=1)

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> CNN:
        """See `Head.build`."""
        if any(stride != 1 for stride in settings.get("stride_sizes") or ()):
            raise EncoderError(
                f"CNN with strides {settings['stride_sizes']}, expected 1, which gives one vector per token. Train it "
                "again without strides."
            )
        newer = "in_embedding_dimension"
        width = settings[newer] if newer in settings else settings["in_word_embedding_dimension"]
        return cls(width, settings["out_channels"], settings["kernel_sizes"])

    def settings(self) -> dict[str, object]:
        """See `Head.settings`."""
        return {
            "in_word_embedding_dimension": self.in_features,
            "out_channels": self.channels,
            "kernel_sizes": list(self.kernels),
            "stride_sizes": [1] * len(self.kernels),
        }


class TokenReLU(TokenHead):
    """ReLU of token vectors: the activation of IS-BERT's convolutions in the paper (equation 1).

    sentence-transformers has no module for ReLU. Since release 5 it reads a dense layer on tokens, so ReLU is saved as
    one whose weight is the identity matrix.
    """

    saved_as = "Dense"
    known = (*Dense.known, *VECTOR_NAMES)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.widths = width, (width, width)
        self.linear = nn.Module()
        self.linear.register_buffer("weight", torch.eye(width))

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """Replace negative numbers by 0: (…, D)."""
        return functional.relu(x_BTD)

    def packed(self, x_ND: torch.Tensor, sentence_N: torch.Tensor) -> torch.Tensor:  # noqa: ARG002 - one signature
        """See `TokenHead.packed`."""
        return functional.relu(x_ND)

    @classmethod
    def matches(cls, settings: Mapping[str, Any]) -> bool:
        """Return whether the dense layer maps token vectors."""
        return maps_tokens(settings)

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> TokenReLU:
        """See `Head.build`."""
        head = cls(settings["in_features"])
        if (found := dict(settings)) != (expected := head.settings()):
            raise EncoderError(
                f"a dense layer on token vectors with the settings {found}, expected {expected} (ReLU). Choose a model "
                "without dense layers before its pooling."
            )
        return head

    def check_weights(self) -> None:
        """See `Head.check_weights`."""
        weight_DD = self.linear.get_buffer("weight")
        if not torch.equal(weight_DD, torch.eye(len(weight_DD))):
            raise EncoderError(
                "a dense layer on token vectors with trained weights, expected the identity matrix (ReLU). Choose a "
                "model without dense layers before its pooling."
            )

    def settings(self) -> dict[str, object]:
        """See `Head.settings`."""
        return {
            "in_features": self.width,
            "out_features": self.width,
            "bias": False,
            "activation_function": f"{nn.ReLU.__module__}.{nn.ReLU.__name__}",
            **dict.fromkeys(VECTOR_NAMES, TOKENS),
        }


def neighbours(sentence_N: torch.Tensor, reach: int) -> torch.Tensor:
    """Return the indices (N, K) of each token's window, `reach` tokens to each side; N beyond its sentence's ends."""
    count = len(sentence_N)
    index_N = torch.arange(count, device=sentence_N.device)
    around_NK = index_N[:, None] + torch.arange(-reach, reach + 1, device=sentence_N.device)
    inside_NK = around_NK.clamp(0, count - 1)
    own_NK = (sentence_N[inside_NK] == sentence_N[:, None]) & (inside_NK == around_NK)
    return around_NK.where(own_NK, count)


def with_convolutions(encoder: Encoder) -> Encoder:
    """Add the configured convolutions to an encoder; return it unchanged if it has some or none are configured.

    The weights are torch's default initialisation of `Conv1d`, from torch's random generator; no other numbers are
    drawn.

    Raises:
        EncoderError: The encoder is a static table: sentence-transformers allows no module between it and the mean.
    """
    from bsl.models.encoder.static import StaticTable

    config = encoder.config.cnn
    if config is None or convolutions_of(encoder.token_heads) is not None:
        return encoder
    if isinstance(encoder.backbone, StaticTable):
        raise EncoderError(
            f"{encoder.config.model}: a static table cannot have convolutions, because sentence-transformers supports "
            "only its plain mean. Set encoder.cnn=null, or choose a transformer."
        )
    cnn = CNN(encoder.token_width, config.channels, config.kernels)
    added = [cnn, TokenReLU(config.channels * len(config.kernels))] if config.relu else [cnn]
    heads = [*encoder.token_heads, *(head.to(encoder.device) for head in added)]
    return encoder.with_heads(encoder.config, heads, encoder.sentence_heads)


def check_convolutions(encoder: Encoder) -> None:
    """Check that an encoder's convolutions are the configured ones; pass if it has none or none are configured.

    Raises:
        EncoderError: They differ.
    """
    found, configured = convolutions_of(encoder.token_heads), encoder.config.cnn
    if found is not None and configured is not None and found != configured:
        raise EncoderError(
            f"{encoder.config.model}: encoder.cnn is {configured!r}, but the encoder was saved with {found!r}. Set "
            "encoder.cnn=null to use the saved convolutions."
        )


def convolutions_of(heads: Sequence[TokenHead]) -> CNNConfig | None:
    """Return the settings of the convolutions among `heads`; None if there are none."""
    for cnn in heads:
        if isinstance(cnn, CNN):
            relu = any(isinstance(head, TokenReLU) for head in heads)
            return CNNConfig(kernels=cnn.kernels, channels=cnn.channels, relu=relu)
    return None
