"""Int8 graphs: SmoothQuant scales down large columns before quantisation, which alone changes no vector."""

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from bsl.models.encoder.int8 import NOTE, target_here, target_of
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.serving.onnx_export import export_onnx, quantise_onnx
from tests.every import every
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from bsl.models.serving.smoothquant import smooth  # noqa: E402  it needs the extra

LOUD = 40.0


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory):
    """Return a function that exports a graph with two layer-norm columns enlarged, and a batch for it.

    Its vectors, means of two layers, are those of the encoder.
    """

    @cache
    def make(architecture):
        folder = tmp_path_factory.mktemp("graph")
        encoder, tokenizer = tiny_encoder(folder / "in", architecture, pooling="first-last")
        for module in encoder.modules():
            if isinstance(module, nn.LayerNorm):
                with torch.no_grad():
                    module.weight[:2] *= LOUD
        path = folder / "model.onnx"
        export_onnx(encoder.eval(), path)
        call = tokenizer([*ORIGINALS, *BACK_DE], padding=True, truncation=True, max_length=24, return_tensors="np")
        batch = {name: call[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
        vectors_of_encoder = SentenceEncoder(encoder, tokenizer).encode([*ORIGINALS, *BACK_DE])
        np.testing.assert_allclose(vectors(path, batch), vectors_of_encoder, rtol=0, atol=1e-5 * LOUD)
        return path, batch

    return make


def vectors(graph, batch):
    session = onnxruntime.InferenceSession(graph if isinstance(graph, bytes) else str(graph))
    return session.run(["sentence_embedding"], batch)[0]


def error(found, exact):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def initial(graph):
    return {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.graph.initializer}


@pytest.mark.parametrize("architecture", ["bert", pytest.param("modernbert", marks=pytest.mark.slow)])
def test_smoothing_changes_weights_but_not_vectors_and_skips_excluded_nodes(graph_of, architecture):
    path, batch = graph_of(architecture)
    graph = onnx.load(path)
    weights = initial(graph)
    smooth(graph, [batch], [node.name for node in graph.graph.node])
    assert graph == onnx.load(path)
    smooth(graph, [batch], ())
    onnx.checker.check_model(graph)
    after = initial(graph)
    changed = [name for name in weights.keys() & after.keys() if not np.array_equal(weights[name], after[name])]
    assert len(changed) >= 4  # in two layers, the weights that read the norms of attention and feed-forward net
    assert np.abs(vectors(graph.SerializeToString(), batch) - vectors(path, batch)).max() <= 1e-5


TARGETS = sorted({"avx2", target_here()})  # targets whose sums this processor does not saturate


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("architecture", ["bert", pytest.param("modernbert", marks=pytest.mark.slow)])
def test_smoothing_reduces_int8_error_of_large_columns(graph_of, tmp_path, architecture, target, monkeypatch):
    path, batch = graph_of(architecture)
    exact = vectors(path, batch)
    quantise_onnx(path, tmp_path / "even.onnx", [batch], target)
    monkeypatch.setattr("bsl.models.serving.smoothquant.ALPHA", 0.0)  # scale by the weights' rows only
    monkeypatch.setattr("bsl.models.serving.smoothquant._LEAST", 1e9)  # and not even by those: all columns alike
    quantise_onnx(path, tmp_path / "plain.onnx", [batch], target)
    even, plain = (error(vectors(tmp_path / f"{name}.onnx", batch), exact) for name in ("even", "plain"))
    assert even < 0.7 * plain


@every(
    [
        ("x86_64", "fpu avx2 avx512f avx512_bf16 avx512_vnni", "vnni"),
        ("AMD64", "fpu avx2 avx_vnni", "vnni"),
        ("x86_64", "fpu avx2 fma", "avx2"),
        ("x86_64", "fpu avx2 avx512f avx512bw", "avx2"),
        ("x86_64", "", "avx2"),  # Windows and macOS report no flags
        ("aarch64", "fp asimd", "vnni"),
        ("arm64", "", "vnni"),
    ]
)
def test_int8_target_depends_on_machine_and_cpu_flags(machine, flags, target):
    assert target_of(machine, flags.split()) == target


def cut(x_MK, weight_KN):
    """Multiply unsigned by signed bytes as x86 without VNNI does: sums of two products saturate at 16 bits."""
    products_MKN = x_MK.astype(np.int64)[:, :, None] * weight_KN.astype(np.int64)[None]
    sums = products_MKN.reshape(len(x_MK), -1, 2, weight_KN.shape[1]).sum(2)
    return np.clip(sums, -(2**15), 2**15 - 1).sum(1)


def test_only_avx2_weights_avoid_16_bit_saturation_at_a_bounded_error(graph_of, tmp_path):
    path, batch = graph_of("bert")
    random, exact, drift = np.random.default_rng(0), vectors(path, batch), {}
    for target, largest in (("avx2", 64), ("vnni", 127)):
        made = tmp_path / f"{target}.onnx"
        quantise_onnx(path, made, [batch], target)
        graph = onnx.load(made)
        assert {entry.key: entry.value for entry in graph.metadata_props}[NOTE] == target
        products = [node for node in graph.graph.node if node.op_type == "MatMulInteger"]
        weights = [initial(graph)[node.input[1]] for node in products]  # as ONNX Runtime multiplies them
        assert len(weights) >= 6
        assert {weight.dtype for weight in weights} == {np.dtype(np.int8)}
        assert max(int(np.abs(weight.astype(int)).max()) for weight in weights) == largest
        inputs = [random.choice([0, 255, 250, 200, 30], (64, len(weight))).astype(np.uint8) for weight in weights]
        equal = [np.array_equal(cut(x, w), x.astype(int) @ w.astype(int)) for x, w in zip(inputs, weights, strict=True)]
        assert all(equal) is (target == "avx2")
        drift[target] = error(vectors(made, batch), exact)
    assert 0 < drift["avx2"] < 3 * drift["vnni"]


def test_onnx_runtime_does_not_fuse_skip_layer_norm(graph_of, tmp_path):
    path, _ = graph_of("bert")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(str(path), options)
    kinds = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    assert "SkipLayerNormalization" not in kinds
    assert kinds.count("Sum") == kinds.count("LayerNormalization")  # the norm of the embeddings reads a sum as well
