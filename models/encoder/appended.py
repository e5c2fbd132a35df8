"""Convolutions that a configuration asks for, put above a transformer that came without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.encoder.cnn import CNN, TokenReLU
from models.encoder.config import CNNConfig
from models.encoder.static import StaticTable
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.encoder.heads import TokenHead
    from models.encoder.network import Encoder


def with_convolutions(encoder: Encoder) -> Encoder:
    """The encoder with the convolutions that its configuration asks for; itself if it has some or none are asked for.

    Draws their first weights from torch's generator, as torch initialises a `Conv1d`, and nothing else.

    Raises:
        EncoderError: The encoder is a static table, to which sentence-transformers adds nothing before the mean.
    """
    config = encoder.config.cnn
    if config is None or convolutions_of(encoder.token_heads) is not None:
        return encoder
    if isinstance(encoder.backbone, StaticTable):
        raise EncoderError(
            f"{encoder.config.model}: convolutions above a static table, expected a transformer, since "
            "sentence-transformers takes a table's plain mean alone; set encoder.cnn=null or choose another model"
        )
    cnn = CNN(encoder.token_width, config.channels, config.kernels)
    added = [cnn, TokenReLU(config.channels * len(config.kernels))] if config.relu else [cnn]
    heads = [*encoder.token_heads, *(head.to(encoder.device) for head in added)]
    return encoder.with_heads(encoder.config, heads, encoder.sentence_heads)


def check_convolutions(encoder: Encoder) -> None:
    """Compare an encoder's convolutions, if it has any, with those that its configuration asks for, if it does.

    Raises:
        EncoderError: They differ.
    """
    found, asked = convolutions_of(encoder.token_heads), encoder.config.cnn
    if found is not None and asked is not None and found != asked:
        raise EncoderError(
            f"{encoder.config.model}: saved with convolutions {found!r}, the configuration asks for {asked!r}; set "
            "encoder.cnn=null, which keeps those that are there"
        )


def convolutions_of(heads: Sequence[TokenHead]) -> CNNConfig | None:
    """The settings of the convolutions among some heads; None if there are none."""
    for cnn in heads:
        if isinstance(cnn, CNN):
            relu = any(isinstance(head, TokenReLU) for head in heads)
            return CNNConfig(kernels=cnn.kernels, channels=cnn.channels, relu=relu)
    return None
