"""An int8 graph: columns that are much larger than others are evened out first, which changes no vector by itself."""

import numpy as np
import pytest
import torch
from torch import nn

from models.encoder.onnx import export_onnx, quantise_onnx
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from models.encoder.smoothing import smooth  # noqa: E402  it needs the extra

LOUD = 40.0


def graph_of(folder, architecture, loud=1.0):
    """A graph of an encoder of whose layer norms two columns are so much larger, and what it is run on."""
    encoder, tokenizer = tiny_encoder(folder / "in", architecture)
    for module in encoder.modules():
        if isinstance(module, nn.LayerNorm):
            with torch.no_grad():
                module.weight[:2] *= loud
    path = folder / "model.onnx"
    export_onnx(encoder.eval(), path)
    call = tokenizer([*ORIGINALS, *BACK_DE], padding=True, truncation=True, max_length=24, return_tensors="np")
    return path, {name: call[name].astype(np.int64) for name in ("input_ids", "attention_mask")}


def vectors(graph, batch):
    session = onnxruntime.InferenceSession(graph if isinstance(graph, bytes) else str(graph))
    return session.run(["sentence_embedding"], batch)[0]


def error(found, exact):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_evening_out_changes_what_is_multiplied_but_no_vector(tmp_path, architecture):
    path, batch = graph_of(tmp_path, architecture, LOUD)
    graph = onnx.load(path)
    weights = {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.graph.initializer}
    smooth(graph, [batch], ())
    onnx.checker.check_model(graph)
    changed = [
        weight.name
        for weight in graph.graph.initializer
        if weight.name in weights and not np.array_equal(onnx.numpy_helper.to_array(weight), weights[weight.name])
    ]
    assert len(changed) >= 4  # of two layers, what reads attention's and the feed-forward net's norms
    assert np.abs(vectors(graph.SerializeToString(), batch) - vectors(path, batch)).max() <= 1e-5


def test_what_is_left_alone_stays(tmp_path):
    path, batch = graph_of(tmp_path, "bert", LOUD)
    graph = onnx.load(path)
    smooth(graph, [batch], [node.name for node in graph.graph.node])
    assert graph == onnx.load(path)


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_large_columns_cost_int8_less_when_they_are_evened_out(tmp_path, architecture, monkeypatch):
    path, batch = graph_of(tmp_path, architecture, LOUD)
    exact = vectors(path, batch)
    quantise_onnx(path, tmp_path / "even.onnx", [batch])
    monkeypatch.setattr("models.encoder.smoothing.ALPHA", 0.0)  # only what the weights' rows ask for
    monkeypatch.setattr("models.encoder.smoothing._LEAST", 1e9)  # and not that either: all columns alike
    quantise_onnx(path, tmp_path / "plain.onnx", [batch])
    even, plain = (error(vectors(tmp_path / f"{name}.onnx", batch), exact) for name in ("even", "plain"))
    assert even < 0.7 * plain


def test_a_sum_that_is_normalised_is_not_joined_with_its_norm(tmp_path):
    path, _ = graph_of(tmp_path, "bert")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(str(path), options)
    kinds = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    assert "SkipLayerNormalization" not in kinds
    assert kinds.count("Sum") == kinds.count("LayerNormalization")  # that of the embeddings is of a sum as well
