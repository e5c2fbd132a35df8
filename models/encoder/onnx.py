"""Write an encoder with its pooling as one ONNX graph, for runtimes without PyTorch.

The graph takes what the tokenizer gives and returns sentence vectors; batch size and length are free.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    from models.encoder.network import Encoder

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"


def export_onnx(encoder: Encoder, path: Path) -> None:
    """Write `encoder` to `path`: input_ids and attention_mask (B, T) int64 → sentence_embedding (B, D) fp32.

    Weights stand in the file itself. The encoder is moved nowhere; it must be on the CPU, in evaluation mode.

    Raises:
        EncoderError: The exporter's packages are not installed, or it cannot express this architecture.
    """
    try:
        import onnxscript  # noqa: F401 - an optional extra, asked for before the work begins
    except ImportError as error:
        raise EncoderError(f"ONNX export needs {error.name}; pip install 'bsl-pipeline[onnx]'") from error
    # Two rows of different length: sizes of 1 would be taken for constants.
    ids_BT = torch.ones(2, min(8, encoder.config.length), dtype=torch.int64)
    mask_BT = torch.ones_like(ids_BT)
    mask_BT[1, 3:] = 0
    free = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=encoder.config.length)}
    attention = encoder.backbone.config._attn_implementation
    # Fused kernels choose their path by looking at the mask, which a graph cannot; eager attention is plain algebra.
    encoder.backbone.set_attn_implementation("eager")
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of the exporter about itself
            program = torch.onnx.export(
                encoder,
                (ids_BT, mask_BT),
                dynamo=True,
                input_names=INPUTS,
                output_names=(OUTPUT,),
                dynamic_shapes=(free, free),
                verbose=False,
            )
    except (RuntimeError, torch.onnx.OnnxExporterError) as error:
        raise EncoderError(
            f"{encoder.config.model}: torch.onnx cannot export a {encoder.backbone.config.model_type} ({error}); "
            "use the folder with sentence-transformers instead"
        ) from error
    finally:
        encoder.backbone.set_attn_implementation(attention)
    assert program is not None
    program.save(str(path), external_data=False)
