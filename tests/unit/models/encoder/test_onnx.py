"""Exported ONNX graphs give the vectors of the encoder; folders with a graph are read, and refused for training."""

import platform
import shutil
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, save

from bsl.models.encoder.cnn import CNN
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.heads import Dense
from bsl.models.encoder.int8 import GRAPHS
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.models.encoder.static import StaticTable, static_tokenizer
from bsl.models.errors import EncoderError
from bsl.models.objectives.contrastive import Contrastive
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.serving.onnx_export import OUTPUT, export_onnx, quantise_onnx
from bsl.storage.filesystem.model_folder import DEFAULT_GRAPH, GRAPH_FOLDER
from bsl.storage.sources.model_sources import resolve_model
from tests.folder_config import saved_config
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, WIDTH, tiny_encoder

INT8 = GRAPHS["vnni"]
TEXTS = [*ORIGINALS, *BACK_DE, *BACK_FR, "a man is playing " * 20, "x"]


def inputs(tokenizer, texts):
    call = tokenizer(texts, padding=True, truncation=True, max_length=24, return_tensors="np")
    return {name: call[name] for name in ("input_ids", "attention_mask")}


def vectors(path, tokenizer, texts):
    return onnxruntime.InferenceSession(str(path)).run([OUTPUT], inputs(tokenizer, texts))[0]


def check_graph(path, encoder, tokenizer):
    for texts in (TEXTS, TEXTS[:1], TEXTS[8:]):
        found = vectors(path, tokenizer, texts)
        assert found.shape == (len(texts), encoder.width)
        assert np.abs(found - SentenceEncoder(encoder, tokenizer).encode(texts)).max() <= 1e-5


@pytest.mark.parametrize("kind", [pytest.param("modernbert", marks=pytest.mark.slow), "table"])
def test_onnx_graph_of_another_backbone_matches_encoder_vectors(tmp_path, kind):
    """Graphs of BERT are those of `exported` and, with the mean of two layers, of test_int8.py."""
    encoder, tokenizer = tiny_encoder(tmp_path / "in", "bert" if kind == "table" else kind)
    if kind == "table":
        tokenizer, config = static_tokenizer(tokenizer.backend_tokenizer), EncoderConfig(model="table", max_length=24)
        encoder = Encoder(StaticTable(torch.randn(len(tokenizer), 5)), config, [], [Dense(5, 4)])
    export_onnx(encoder.eval(), tmp_path / "encoder.onnx")
    check_graph(tmp_path / "encoder.onnx", encoder, tokenizer)


def test_missing_onnx_extra_error_names_the_install_command(tmp_path, monkeypatch):
    encoder, _ = tiny_encoder(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(EncoderError, match=r"pip install 'bsl-pipeline\[onnx\]'"):
        export_onnx(encoder, tmp_path / "encoder.onnx")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return a folder with weights, a graph and its int8 form: CNN, pooling CLS and mean, Dense, Normalize."""
    folder = tmp_path_factory.mktemp("exported")
    bare, tokenizer = tiny_encoder(folder / "in", layers=1)
    config = bare.config.model_copy(update={"pooling": "cls+mean", "normalize": True})
    torch.manual_seed(1)
    encoder = Encoder(bare.backbone, config, [CNN(WIDTH, 6)], [Dense(36, 12)]).eval()
    SentenceEncoder(encoder, tokenizer).save(folder / "out")
    graphs = folder / "out" / GRAPH_FOLDER
    graphs.mkdir()
    attention = bare.backbone.config._attn_implementation
    export_onnx(encoder, graphs / DEFAULT_GRAPH)
    assert bare.backbone.config._attn_implementation == attention
    check_graph(graphs / DEFAULT_GRAPH, encoder, tokenizer)
    quantise_onnx(graphs / DEFAULT_GRAPH, graphs / INT8, [inputs(tokenizer, TEXTS)], "vnni")
    return folder / "out", SentenceEncoder(encoder, tokenizer).encode(TEXTS)


@pytest.fixture
def graph_only(exported, tmp_path):
    """Make a folder without weights that has only the named graphs."""

    def make(*graphs):
        folder = shutil.copytree(exported[0], tmp_path / "only")
        (folder / "model.safetensors").unlink()
        for path in (folder / GRAPH_FOLDER).iterdir():
            if path.name not in graphs:
                path.unlink()
        return folder

    return make


@pytest.mark.parametrize(("name", "least", "most"), [(DEFAULT_GRAPH, 0, 1e-5), (INT8, 1e-6, 0.1)])
def test_loaded_graph_matches_the_vectors_of_the_weights_and_of_onnx_runtime(graph_only, exported, name, least, most):
    """ONNX Runtime gets one text at a time, because int8 scales are those of a whole batch."""
    folder = graph_only(name)
    encoder = SentenceEncoder.load(folder)
    assert least <= np.abs(encoder.encode(TEXTS) - exported[1]).max() <= most
    assert (encoder.config.max_length, encoder.config.pooling) == (24, "cls+mean")
    for text in TEXTS:
        found = vectors(folder / GRAPH_FOLDER / name, encoder.tokenizer, [text])
        assert np.abs(found - encoder.encode([text])).max() <= 1e-6


def test_graph_path_resolves_to_that_graph_and_weights_take_precedence_otherwise(exported):
    folder, expected = exported
    path = folder / GRAPH_FOLDER / INT8
    assert path.stat().st_size < (folder / GRAPH_FOLDER / DEFAULT_GRAPH).stat().st_size
    model = resolve_model(str(path))
    assert model.identity == f"{resolve_model(str(folder)).identity}/{INT8}"
    assert read_saved(model.described).graph == path
    assert 1e-6 < np.abs(SentenceEncoder.load(model.folder).encode(TEXTS) - expected).max() < 0.1
    assert read_saved(folder).graph is None


def test_several_graphs_need_model_onnx_or_an_explicit_path(graph_only):
    folder = graph_only(DEFAULT_GRAPH, INT8)
    assert read_saved(folder).graph.name == DEFAULT_GRAPH
    (folder / GRAPH_FOLDER / DEFAULT_GRAPH).rename(folder / GRAPH_FOLDER / "model_O4.onnx")
    named = r"several ONNX graphs \(onnx/model_O4\.onnx, onnx/model_qint8.*path of one graph"
    with pytest.raises(EncoderError, match=named):
        read_saved(folder)


def test_training_and_unsupported_settings_of_a_graph_are_rejected(graph_only):
    folder = graph_only(DEFAULT_GRAPH)
    with pytest.raises(EncoderError, match="an ONNX graph cannot be trained"):
        Contrastive(SentenceEncoder.load(folder).network, ContrastiveConfig())
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    for settings, message in (
        ({"dropout": 0.1}, "has no dropout"),
        ({"max_length": 80}, "the model accepts at most 64 tokens"),
        ({"pooling": "first-last"}, r"only the last layer's token vectors, but encoder\.pooling=first-last"),
    ):
        with pytest.raises(EncoderError, match=message):
            SentenceEncoder.load(folder, EncoderConfig(model="x", **settings))


def test_graph_with_wrong_inputs_or_invalid_file_is_rejected(graph_only):
    folder = graph_only(DEFAULT_GRAPH)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "other", ends[:1], ends[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(made, folder / GRAPH_FOLDER / DEFAULT_GRAPH)
    with pytest.raises(EncoderError, match="expected input_ids, attention_mask, token_type_ids and last_hidden_state"):
        SentenceEncoder.load(folder)
    (folder / GRAPH_FOLDER / DEFAULT_GRAPH).write_bytes(b"no graph")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        SentenceEncoder.load(folder)


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="other processors do not saturate")
@pytest.mark.parametrize(("flags", "warned"), [("fpu avx2 fma", True), ("fpu avx2 avx_vnni", False)])
def test_vnni_graph_on_a_processor_without_vnni_warns(graph_only, monkeypatch, caplog, flags, warned):
    monkeypatch.setattr("bsl.models.encoder.int8.cpu_features", lambda: frozenset(flags.split()))
    folder = graph_only(INT8)
    SentenceEncoder.load(folder, saved_config(folder, "x"))
    assert ("Export it again with --target avx2" in caplog.text) is warned
