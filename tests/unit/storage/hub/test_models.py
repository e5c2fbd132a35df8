"""The files of a Hub repository that belong to its model."""

import pytest

from storage.hub.models import model_files

SETTINGS = ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"]
HEAD = "2_Dense/model.safetensors"
GRAPHS = ["onnx/model.onnx", "onnx/model.onnx_data", "onnx/model_qint8_avx512_vnni.onnx"]


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (["model.safetensors", "pytorch_model.bin", HEAD, *GRAPHS], ["model.safetensors", HEAD]),
        (["0_Transformer/pytorch_model.bin", HEAD, *GRAPHS], ["0_Transformer/pytorch_model.bin", HEAD]),
        ([HEAD, *GRAPHS, "openvino/model.bin"], [HEAD, *GRAPHS[:2]]),
        (["model.onnx", "model_O3.onnx"], ["model.onnx"]),
        (["onnx/model_qint8_arm64.onnx"], ["onnx/model_qint8_arm64.onnx"]),
    ],
)
def test_model_files_include_onnx_graphs_only_without_other_weights(names, weights):
    assert set(model_files([*SETTINGS, *names, "notes.pdf"])) == {*SETTINGS, *weights}
