"""Other programs open a saved folder without a report of missing weights."""

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, PreTrainedModel

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from tests.layouts import LAYOUTS, write
from tests.tiny_encoder import write_tiny


@pytest.mark.parametrize("name", LAYOUTS)
def test_saved_folder_of_every_layout_has_all_weights(name, tmp_path):
    made = LAYOUTS[name]
    encoder = SentenceEncoder.load(write(tmp_path / "made", made(tmp_path) if callable(made) else made))
    backbone = encoder.network.backbone
    if not isinstance(backbone, PreTrainedModel):
        pytest.skip("no transformer")
    encoder.save(tmp_path / "saved")
    kind = type(backbone) if "Encoder" in type(backbone).__name__ else AutoModel
    _, info = kind.from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]


def test_opening_a_saved_bert_prints_nothing_and_its_pooler_is_the_identity(tmp_path, capfd):
    encoder = SentenceEncoder.load(write_tiny(tmp_path / "made"), EncoderConfig(model="x", max_length=24))
    encoder.save(tmp_path / "saved")
    capfd.readouterr()
    SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    model = AutoModel.from_pretrained(tmp_path / "saved")
    printed = "".join(capfd.readouterr())
    assert "MISSING" not in printed
    assert "newly initialized" not in printed
    width = model.config.hidden_size
    assert torch.equal(load_file(tmp_path / "saved" / "model.safetensors")["pooler.dense.weight"], torch.eye(width))
