"""Folders with an ONNX graph for weights: read like sentence-transformers and ONNX Runtime, refused for training."""

import importlib.util
import platform
import shutil

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, save
from sentence_transformers import SentenceTransformer
from transformers.modeling_outputs import BaseModelOutput

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.heads import Dense
from bsl.models.encoder.int8 import GRAPHS
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.serialization.folder_settings import read_saved
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
OPTIMUM = importlib.util.find_spec("optimum") and importlib.util.find_spec("optimum.onnxruntime")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return a folder with weights, a graph and its int8 form: pooling CLS and mean, Dense, Normalize."""
    folder = tmp_path_factory.mktemp("exported")
    bare, tokenizer = tiny_encoder(folder / "in", layers=1)
    config = bare.config.model_copy(update={"pooling": "cls+mean", "normalize": True})
    torch.manual_seed(1)
    encoder = Encoder(bare.backbone, config, [], [Dense(2 * WIDTH, 12)]).eval()
    SentenceEncoder(encoder, tokenizer).save(folder / "out")
    (folder / "out" / GRAPH_FOLDER).mkdir()
    export_onnx(encoder, folder / "out" / GRAPH_FOLDER / DEFAULT_GRAPH)
    call = tokenizer(TEXTS, padding=True, truncation=True, max_length=24, return_tensors="np")
    batch = {name: call[name] for name in ("input_ids", "attention_mask")}
    quantise_onnx(folder / "out" / GRAPH_FOLDER / DEFAULT_GRAPH, folder / "out" / GRAPH_FOLDER / INT8, [batch], "vnni")
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


def test_loaded_graph_matches_the_vectors_of_the_weights(graph_only, exported):
    encoder = SentenceEncoder.load(graph_only(DEFAULT_GRAPH))
    assert np.abs(encoder.encode(TEXTS) - exported[1]).max() <= 1e-5
    assert encoder.config.max_length == 24
    assert encoder.config.pooling == "cls+mean"


def test_onnx_runtime_session_matches_the_vectors_of_the_weights(exported):
    folder, expected = exported
    tokenizer = SentenceEncoder.load(folder).tokenizer
    session = onnxruntime.InferenceSession(str(folder / GRAPH_FOLDER / DEFAULT_GRAPH))
    call = tokenizer(TEXTS, padding=True, truncation=True, max_length=24, return_tensors="np")
    (vectors,) = session.run([OUTPUT], {name: call[name] for name in ("input_ids", "attention_mask")})
    assert np.abs(vectors - expected).max() <= 1e-5


class Session(torch.nn.Module):
    """The module that optimum puts in place of the transformer, with the call of sentence-transformers."""

    def __init__(self, path, config):
        super().__init__()
        self.session, self.config = onnxruntime.InferenceSession(str(path)), config

    def forward(self, input_ids, attention_mask, **_):
        given = {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()}
        return BaseModelOutput(torch.from_numpy(self.session.run(["last_hidden_state"], given)[0]))


def test_sentence_transformers_with_the_graph_gives_the_same_vectors(exported):
    """sentence-transformers' own tokenizer, pooling and heads around the graph.

    It loads graphs with optimum-onnx 0.1.0, which needs transformers < 4.58 and cannot be installed together with ours.
    """
    folder, expected = exported
    if OPTIMUM:
        peer = SentenceTransformer(str(folder), device="cpu", backend="onnx")
    else:
        peer = SentenceTransformer(str(folder), device="cpu")
        peer[0].model = Session(folder / GRAPH_FOLDER / DEFAULT_GRAPH, peer[0].model.config)
    assert np.abs(peer.encode(TEXTS) - expected).max() <= 1e-5


def test_int8_graph_is_smaller_with_similar_vectors(graph_only, exported):
    folder = graph_only(INT8)
    encoder = SentenceEncoder.load(folder)
    found = encoder.encode(TEXTS)
    assert (found * exported[1]).sum(axis=1).min() > 0.99  # dot products of unit vectors
    assert np.abs(found - exported[1]).max() > 1e-6
    sizes = [(exported[0] / GRAPH_FOLDER / name).stat().st_size for name in (DEFAULT_GRAPH, INT8)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("name", [DEFAULT_GRAPH, INT8])
def test_graph_heads_match_the_heads_of_the_folder(graph_only, name):
    """One text at a time, because int8 scales are those of a whole batch."""
    folder = graph_only(name)
    encoder = SentenceEncoder.load(folder)
    session = onnxruntime.InferenceSession(str(folder / GRAPH_FOLDER / name))
    for text in TEXTS:
        call = encoder.tokenizer([text], truncation=True, max_length=24, return_tensors="np")
        given = {key: call[key] for key in ("input_ids", "attention_mask")}
        assert np.abs(session.run([OUTPUT], given)[0] - encoder.encode([text])).max() <= 1e-6


def test_graph_path_resolves_to_that_graph(exported):
    folder, expected = exported
    path = folder / GRAPH_FOLDER / INT8
    model = resolve_model(str(path))
    assert model.identity == f"{resolve_model(str(folder)).identity}/{INT8}"
    assert read_saved(model.described).graph == path
    encoder = SentenceEncoder.load(model.folder)
    assert 1e-6 < np.abs(encoder.encode(TEXTS) - expected).max() < 0.1


def test_weights_take_precedence_over_graphs(exported):
    assert read_saved(exported[0]).graph is None


def test_several_graphs_need_model_onnx_or_an_explicit_path(graph_only, exported):
    folder = graph_only(DEFAULT_GRAPH, INT8)
    assert read_saved(folder).graph.name == DEFAULT_GRAPH
    (folder / GRAPH_FOLDER / DEFAULT_GRAPH).rename(folder / GRAPH_FOLDER / "model_O4.onnx")
    with pytest.raises(
        EncoderError, match=r"several ONNX graphs \(onnx/model_O4\.onnx, onnx/model_qint8.*path of one graph"
    ):
        read_saved(folder)


def test_training_an_onnx_graph_is_rejected(graph_only):
    encoder = SentenceEncoder.load(graph_only(DEFAULT_GRAPH)).network
    with pytest.raises(EncoderError, match="an ONNX graph cannot be trained"):
        Contrastive(encoder, ContrastiveConfig())


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"dropout": 0.1}, "has no dropout"), ({"max_length": 80}, "the model accepts at most 64 tokens")],
)
def test_dropout_or_excess_max_length_is_rejected_for_graphs(graph_only, fields, said):
    folder = graph_only(DEFAULT_GRAPH)
    config = saved_config(folder, "x")
    with pytest.raises(EncoderError, match=said):
        SentenceEncoder.load(folder, config.model_copy(update=fields))


def test_first_last_pooling_of_a_graph_is_rejected(graph_only):
    folder = graph_only(DEFAULT_GRAPH)
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    with pytest.raises(EncoderError, match=r"only the last layer's token vectors, but encoder\.pooling=first-last"):
        SentenceEncoder.load(folder, EncoderConfig(model="x", pooling="first-last", max_length=24))


def test_graph_with_wrong_inputs_or_invalid_file_is_rejected(graph_only, tmp_path):
    folder = graph_only(DEFAULT_GRAPH)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "other", ends[:1], ends[1:])
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        folder / GRAPH_FOLDER / DEFAULT_GRAPH,
    )
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
