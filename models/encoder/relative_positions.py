"""Run MPNet and T5 packed: their attention adds a bias to its scores that depends on the distance of two tokens.

transformers computes the bias for all pairs of a row's tokens, which for concatenated sentences would be too many, and
MPNet's attention cannot be replaced by name. The classes below compute it for the longest sentence of a layout, of
which shorter sentences take the upper left corner. Without a layout they are transformers' own.

Shapes: N tokens of all sentences, T of the longest, D width, H heads, d width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

import torch
from transformers.modeling_outputs import BaseModelOutput

from bsl.models.encoder.unpadded import packed_attention, running_layout

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from bsl.models.encoder.layouts import Layout


def read_layouts(backbone: PreTrainedModel) -> bool:
    """Let the modules of a model that compute a bias by distance read layouts; return whether it has any.

    Weights, their names and saved files stay as they are.
    """
    found = [module for module in backbone.modules() if type(module).__name__ in _READING]
    for module in found:
        if not isinstance(module, _Reading):
            module.__class__ = _reading(type(module))
    return bool(found)


def _reading(own: Any) -> Any:  # noqa: ANN401  a module's class → its subclass
    if own not in _made:
        _made[own] = type(own.__name__, (_READING[own.__name__], own), {})
    return _made[own]


def _empty(own: Any) -> Any:  # noqa: ANN401
    kind = _reading(own)
    return kind.__new__(kind)


class _Reading(torch.nn.Module):
    """A module that reads layouts; its class is made here, so copies and pickles name transformers' own."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return _empty, (type(self).__bases__[1],), self.__dict__


@dataclass(frozen=True)
class _Bias:
    """MPNet's bias, (1, H, T, T), and the layout, which its layers do not pass on."""

    values: torch.Tensor
    layout: Layout


class _MPNetEncoder(_Reading):
    layer: torch.nn.ModuleList

    def forward(self, hidden_1ND: torch.Tensor, *arguments: Any, **options: Any) -> BaseModelOutput:  # noqa: ANN401
        layout = running_layout()
        if layout is None:
            plain: BaseModelOutput = super().forward(hidden_1ND, *arguments, **options)
            return plain
        bias = _Bias(self.compute_position_bias(hidden_1ND[:, : layout.longest]), layout)  # type: ignore[operator]
        for layer in self.layer:
            hidden_1ND = layer(hidden_1ND, None, bias)[0]
        return BaseModelOutput(last_hidden_state=hidden_1ND)


class _MPNetSelfAttention(_Reading):
    q: torch.nn.Linear
    k: torch.nn.Linear
    v: torch.nn.Linear
    o: torch.nn.Linear
    dropout: torch.nn.Dropout
    attention_head_size: int

    def forward(
        self,
        hidden_1ND: torch.Tensor,
        mask: torch.Tensor | None = None,
        position_bias: _Bias | torch.Tensor | None = None,
        **options: Any,  # noqa: ANN401
    ) -> tuple[torch.Tensor, ...]:
        if not isinstance(position_bias, _Bias):
            plain: tuple[torch.Tensor, ...] = super().forward(hidden_1ND, mask, position_bias, **options)
            return plain
        rate = self.dropout.p if self.training else 0.0
        query, key, value = (
            torch.unflatten(linear(hidden_1ND), -1, (-1, self.attention_head_size)).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        attended_1NHd = packed_attention((query, key, value), position_bias.layout, rate, None, position_bias.values)
        return (self.o(attended_1NHd.flatten(2)),)


class _T5Attention(_Reading):
    has_relative_attention_bias: bool

    def forward(
        self,
        hidden_1ND: torch.Tensor,
        *arguments: Any,  # noqa: ANN401
        position_bias: torch.Tensor | None = None,
        layout: Layout | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401  attended tokens, the bias for the next layers, and transformers' own
        if layout is not None:
            options["layout"] = layout
            if position_bias is None and self.has_relative_attention_bias:
                position_bias = self.compute_bias(layout.longest, layout.longest)  # type: ignore[operator]
        return super().forward(hidden_1ND, *arguments, position_bias=position_bias, **options)


_READING: Final[dict[str, type[torch.nn.Module]]] = {
    "MPNetEncoder": _MPNetEncoder,
    "MPNetSelfAttention": _MPNetSelfAttention,
    "T5Attention": _T5Attention,
    "MT5Attention": _T5Attention,
}
_made: Final[dict[Any, Any]] = {}
