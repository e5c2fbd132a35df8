"""An ONNX graph of a transformer, run by ONNX Runtime: inference only, no training.

The file is where sentence-transformers writes it: `onnx/model.onnx`, or `model.onnx` next to config.json; quantised
graphs are `onnx/model_qint8_….onnx`. Pooling, heads, prompts and lengths are read from the same files as for weights.

Shapes: B sentences, T tokens, D width.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from bsl.models.encoder.config import read_settings, read_tokenizer
from bsl.models.encoder.int8 import NOTE, saturates_here
from bsl.models.encoder.pooling import pooling_of
from bsl.models.encoder.tokenizer_check import check_tokenizer
from bsl.models.encoder.transformer import check_length, position_limit_of, prepare_tokenizer, refuse_dropout
from bsl.models.encoder.weights import files_to_load, refuse_pointers
from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from transformers import PreTrainedTokenizerBase

    from bsl.models.encoder.config import EncoderConfig

logger = logging.getLogger(__name__)

OUTPUTS: Final = ("last_hidden_state", "token_embeddings")  # exporters' names for token vectors
GRAPH_TOKENS: Final = 256  # padded tokens per run: larger activations exceed the cache, 1.5 times as slow at 4,096
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")


class OnnxBackbone(nn.Module):
    """Encoder backbone that maps token ids to token vectors by an ONNX graph.

    Attributes:
        config: Configuration of the transformer that was exported.
        path: The graph's file.
    """

    batch_tokens = GRAPH_TOKENS

    def __init__(self, path: Path, folder: Path) -> None:
        """Open a graph on the CPU.

        Args:
            path: The graph's file.
            folder: The model's folder, with config.json.

        Raises:
            EncoderError: ONNX Runtime is not installed, or the graph's inputs or outputs are not a transformer's.
        """
        super().__init__()
        self.config = read_settings(folder)
        self.path = path
        try:
            self._session = session_of(str(path))
        except ImportError as error:
            raise EncoderError(
                f"{path}: an ONNX graph needs onnxruntime. Install it: pip install 'bsl-pipeline[onnx]'"
            ) from error
        if saturates_here(self._session.get_modelmeta().custom_metadata_map.get(NOTE)):
            logger.warning(
                "%s: int8 graph for processors with VNNI, which this one lacks. Sums saturate, so vectors are less "
                "accurate. "
                "Export it again with --target avx2.", path,
            )  # fmt: skip
        self._inputs = [value.name for value in self._session.get_inputs()]
        outputs = [value.name for value in self._session.get_outputs()]
        self._output = next((name for name in OUTPUTS if name in outputs), None)
        if self._output is None or not {"input_ids", "attention_mask"} <= set(self._inputs) <= set(_INPUTS):
            raise EncoderError(
                f"{path}: inputs {', '.join(self._inputs)} and outputs {', '.join(outputs)}, expected "
                f"{', '.join(_INPUTS)} and {' or '.join(OUTPUTS)}. Export the model again for the task "
                "feature-extraction."
            )

    def train(self, mode: bool = True) -> Self:
        """Set evaluation mode; training mode is refused.

        Raises:
            EncoderError: `mode` is true.
        """
        if mode:
            raise EncoderError(
                f"{self.path}: an ONNX graph cannot be trained. Start from the folder that it was exported from."
            )
        super().train(mode)
        return self

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: object) -> BaseModelOutput:
        """Return token vectors (B, T, D) of ids (B, T) as `last_hidden_state`."""
        ids_BT = input_ids.cpu().numpy()
        inputs = {
            "input_ids": ids_BT,
            "attention_mask": attention_mask.cpu().numpy(),
            "token_type_ids": np.zeros_like(ids_BT),
        }
        (x_BTD,) = self._session.run([self._output], {name: inputs[name] for name in self._inputs})
        return BaseModelOutput(
            last_hidden_state=torch.from_numpy(x_BTD).float().to(input_ids.device)
        )  # fp16 graphs too


def load_graph(graph: Path, folder: Path, config: EncoderConfig) -> tuple[OnnxBackbone, PreTrainedTokenizerBase]:
    """Open a graph and load its tokenizer.

    Args:
        graph: The graph's file.
        folder: Folder of the model's settings and tokenizer.
        config: No dropout, a pooling of the last layer, and a length that the transformer accepts.

    Raises:
        EncoderError: The configuration sets something else; or as `OnnxBackbone`.
    """
    pooling = pooling_of(config.pooling)
    if pooling.reads_all_layers or pooling.uses_pooler:
        raise EncoderError(
            f"{graph}: an ONNX graph outputs only the last layer's token vectors, but encoder.pooling={config.pooling} "
            "needs other outputs. Use the folder that it was exported from."
        )
    refuse_dropout(graph, config, "an ONNX graph")
    refuse_pointers([graph, *files_to_load(folder)])
    backbone = OnnxBackbone(graph, folder)
    tokenizer = read_tokenizer(folder)
    check_tokenizer(folder, tokenizer, int(backbone.config.vocab_size))
    check_length(position_limit_of(folder, config.length), config, folder)
    prepare_tokenizer(tokenizer, config)
    return backbone, tokenizer


def session_of(graph: str | bytes) -> Any:  # noqa: ANN401  of a package that may be absent
    """Open a CPU session for a graph's file or bytes, with torch's number of threads and logging of errors only."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
