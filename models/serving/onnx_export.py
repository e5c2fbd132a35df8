"""Write an encoder as an ONNX graph, for runtimes without PyTorch, in fp32 or with int8 products.

The graph maps the tokenizer's output to pooled sentence vectors, and to token vectors, which sentence-transformers
pools itself. Batch size and length are dynamic.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from transformers import PreTrainedModel

from bsl.models.encoder.int8 import NOTE
from bsl.models.encoder.onnx import OUTPUTS
from bsl.models.encoder.unpadded import attention_of
from bsl.models.errors import EncoderError
from bsl.storage.process_setting import ProcessSetting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from onnx import ModelProto

    from bsl.models.encoder.int8 import Target
    from bsl.models.encoder.network import Encoder

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"


def export_onnx(encoder: Encoder, path: Path) -> None:
    """Write `encoder` to `path`: input_ids and attention_mask (B, T) int64 → sentence_embedding (B, D) fp32.

    A second output, last_hidden_state (B, T, D), has the token vectors before their heads. The file contains the
    weights. The encoder must be on the CPU, in evaluation mode.

    Raises:
        EncoderError: The exporter's packages are not installed, or it cannot express this architecture.
    """
    _need("onnxscript")
    # Two rows of different length, because the exporter treats sizes of 1 as constants.
    ids_BT = torch.ones(2, min(8, encoder.config.length), dtype=torch.int64)
    mask_BT = torch.ones_like(ids_BT)
    mask_BT[1, 3:] = 0
    free = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=encoder.config.length)}
    try:
        with _quiet(), torch.no_grad(), _plain_attention(encoder.backbone):
            program = torch.onnx.export(
                _Outputs(encoder).eval(),
                (ids_BT, mask_BT),
                dynamo=True,
                input_names=INPUTS,
                output_names=(OUTPUTS[0], OUTPUT),
                dynamic_shapes=(free, free),
                verbose=False,
            )
    except (RuntimeError, torch.onnx.OnnxExporterError) as error:
        raise EncoderError(
            f"{encoder.config.model}: torch.onnx cannot export this architecture ({error}). Use the folder with "
            "sentence-transformers instead."
        ) from error
    assert program is not None
    _part_sums(program)
    program.save(str(path), external_data=False)


def quantise_onnx(
    path: Path, quantised: Path, batches: Sequence[Mapping[str, NDArray[np.int64]]], target: Target
) -> None:  # fmt: skip
    """Quantise a graph of `export_onnx` to int8 weights and products; its metadata states the target.

    Weights are signed, with one scale per column. The scale of their inputs is computed in each run from the whole
    batch, so a sentence's vector depends slightly on the other sentences. Attention is not quantised, because ONNX
    Runtime's int8 attention operator multiplies each head of each sentence separately.

    Args:
        path: A graph of `export_onnx`.
        quantised: Path of the quantised graph.
        batches: Examples for evening out columns that are much larger than others (`smooth`): input_ids and
            attention_mask (B, T).
        target: Target processors: `avx2` has one bit less per weight, so that no sum saturates.

    Raises:
        EncoderError: The required packages are not installed.
    """
    _need("onnxruntime")
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from bsl.models.serving.smoothquant import smooth

    graph = onnx.load(path)
    graph.graph.ClearField("value_info")  # the exporter's widths of heads contradict shape inference
    excluded = _after(graph, OUTPUTS[0])
    smooth(graph, batches, excluded)
    onnx.helper.set_model_props(graph, {NOTE: target})
    with _quiet():
        quantize_dynamic(
            graph,
            quantised,
            op_types_to_quantize=["MatMul"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=target == "avx2",
            # List included nodes, not excluded ones: the quantiser converts a head's Gemm to a product of another name.
            nodes_to_quantize=[node.name for node in graph.graph.node if node.name not in excluded],
            # Only products with weights, not those of attention; the type is for values without type information.
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
        )


class _Outputs(nn.Module):
    """An encoder with two outputs: the transformer's token vectors and the sentence vectors."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.encoder.outputs(ids_BT, mask_BT)


def _part_sums(program: torch.onnx.ONNXProgram) -> None:
    """Rename additions before layer norms to `Sum`, so that ONNX Runtime does not fuse the two.

    Its fused operator takes eight times as long as both (1.31, 256 tokens of width 384 on an AMD EPYC).
    """
    for node in program.model.graph:
        if node.op_type == "LayerNormalization" and node.inputs[0] is not None:
            summed = node.inputs[0].producer()
            if summed is not None and summed.op_type == "Add":
                summed.op_type = "Sum"


def _after(graph: ModelProto, value: str) -> list[str]:
    """Return the nodes that depend on a value: heads, which sentence-transformers and this package compute in fp32."""
    known, names = {value}, []
    for node in graph.graph.node:  # in topological order
        if known & set(node.input):
            known |= set(node.output)
            names.append(node.name)
    return names


def _need(package: str) -> None:
    try:
        __import__(package)  # from an optional extra, checked before the export starts
    except ImportError as error:
        raise EncoderError(f"ONNX export needs {error.name}. Install it: pip install 'bsl-pipeline[onnx]'") from error


@contextlib.contextmanager
def _plain_attention(backbone: object) -> Iterator[None]:
    """Use eager attention inside the block, because fused kernels branch on the mask, which a graph cannot."""
    if not isinstance(backbone, PreTrainedModel):
        yield
        return
    attention = attention_of(backbone)
    backbone.set_attn_implementation("eager")
    try:
        yield
    finally:
        backbone.set_attn_implementation(attention or "sdpa")  # transformers' default


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings and log messages of the exporters inside the block."""
    with warnings.catch_warnings(), _DISABLED.set_to(max(logging.WARNING, logging.root.manager.disable)):
        warnings.simplefilter("ignore")
        yield


_DISABLED: Final = ProcessSetting(lambda: logging.root.manager.disable, logging.disable)
