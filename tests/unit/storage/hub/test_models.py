"""The files of a Hub repository that belong to its model."""

import pytest

from bsl.storage.hub.models import model_files

SETTINGS = ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"]
PARTS = [f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)]
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
        ([*PARTS, "tf_model.h5", "1_Dense/pytorch_model.bin", HEAD, "2_Dense/pytorch_model.bin", "training_args.bin",
          "onnx/config.json"], [*PARTS, "1_Dense/pytorch_model.bin", HEAD]),
    ],
)  # fmt: skip
def test_model_files_are_settings_and_one_format_of_weights_per_folder(names, weights):
    assert set(model_files([*SETTINGS, *names, "notes.pdf"])) == {*SETTINGS, *weights}
