"""SmoothQuant: even out the columns that int8 products multiply (Xiao et al., 2023, arXiv 2211.10438).

A few output columns of a layer norm are ten times as large as the rest, but all share one scale. Each column is divided
by s_j = max|X_j|^α / max|W_j|^(1 − α) (equation 4), and its row of the weights is multiplied by s_j (equation 3). The
products do not change, but the columns become similar in size.

Shapes: B sentences, T tokens, D columns.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from bsl.models.encoder.onnx import session_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto, TensorProto

    Vectors = NDArray[np.float32]

ALPHA: Final = 0.5
"""Share of the difference between columns that moves to the weights: half, as in the paper."""
_LEAST: Final = 1e-5  # least value of a column's maximum, to avoid division by 0


def smooth(graph: ModelProto, batches: Sequence[Mapping[str, NDArray[np.int64]]], excluded: Container[str]) -> None:
    """Even out, in place, all outputs of layer norms that are multiplied by weights.

    Args:
        graph: Graph of an encoder.
        batches: Inputs for measuring the columns: input_ids and attention_mask (B, T), by name.
        excluded: Names of products that are not changed.
    """
    users = _users(graph)
    weights = {weight.name: weight for weight in graph.graph.initializer if len(users[weight.name]) == 1}
    norms = {node.output[0]: node for node in graph.graph.node if node.op_type == "LayerNormalization"}
    read = {value: [node for node in users[value] if _is_product(node, weights, excluded)] for value in norms}
    fed = {value: products for value, products in read.items() if products}
    if not fed:
        return
    largest = _largest(graph, [*fed], batches)
    for value, products in fed.items():
        rows_D = np.max([np.abs(_array(weights[node.input[1]])).max(axis=1) for node in products], axis=0)
        s_D = np.maximum(largest[value], _LEAST) ** ALPHA / np.maximum(rows_D, _LEAST) ** (1 - ALPHA)
        for node in products:
            _scale(weights[node.input[1]], s_D[:, None])
        norm_weights = [weights[name] for name in norms[value].input[1:] if name in weights]
        if len(products) == len(users[value]) and len(norm_weights) == len(norms[value].input) - 1:
            for weight in norm_weights:
                _scale(weight, 1 / s_D)
        else:
            _divide(graph, value, s_D, products)


def _users(graph: ModelProto) -> defaultdict[str, list[NodeProto]]:
    users: defaultdict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.graph.node:
        for value in node.input:
            users[value].append(node)
    return users


def _is_product(node: NodeProto, weights: Container[str], excluded: Container[str]) -> bool:
    return node.op_type == "MatMul" and node.input[1] in weights and node.name not in excluded


def _largest(
    graph: ModelProto, values: Sequence[str], batches: Sequence[Mapping[str, NDArray[np.int64]]]
) -> dict[str, Vectors]:
    """Return the largest magnitude of each column over all tokens, (D,), for each value."""
    seen = onnx.ModelProto()
    seen.CopyFrom(graph)
    seen.graph.output.extend(onnx.ValueInfoProto(name=value) for value in values)
    session = session_of(seen.SerializeToString())
    largest: dict[str, Vectors] = {}
    for batch in batches:
        real_BT = batch["attention_mask"].astype(bool)
        for value, x in zip(values, session.run(values, dict(batch)), strict=True):
            of_tokens = x.shape[:2] == real_BT.shape  # others are per position, as in DeBERTa
            found_D = np.abs(x[real_BT] if of_tokens else x.reshape(-1, x.shape[-1])).max(axis=0)
            largest[value] = np.maximum(largest.get(value, found_D), found_D)
    return largest


def _divide(graph: ModelProto, value: str, s_D: Vectors, products: Sequence[NodeProto]) -> None:
    """Give products a value with divided columns; other nodes, such as residual sums, read the original value."""
    even, inverse = f"{value}_even", f"{value}_inverse"
    divide = helper.make_node("Mul", [value, inverse], [even], name=even)
    graph.graph.initializer.append(numpy_helper.from_array((1 / s_D).astype(np.float32), inverse))
    for node in products:
        node.input[0] = even
    index = next(index for index, node in enumerate(graph.graph.node) if value in node.output)
    graph.graph.node.insert(index + 1, divide)


def _scale(weight: TensorProto, by: Vectors) -> None:
    weight.CopyFrom(numpy_helper.from_array((_array(weight) * by).astype(np.float32), weight.name))


def _array(weight: TensorProto) -> Vectors:
    array: Vectors = numpy_helper.to_array(weight)
    return array
