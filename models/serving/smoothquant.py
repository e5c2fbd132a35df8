"""Even out what int8 products multiply: SmoothQuant (Xiao et al., 2023, arXiv 2211.10438).

A few columns of what a layer norm gives are ten times as large as the rest, and one scale must hold them all. Each
column is divided by s_j = max|X_j|^α / max|W_j|^(1 − α) (equation 4) and its row of the weights multiplied by it
(equation 3): the products are what they were, and the columns come nearer to each other.

Shapes: B sentences, T tokens, D columns.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from models.encoder.onnx import session_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto, TensorProto

    Vectors = NDArray[np.float32]

ALPHA: Final = 0.5
"""How much of the difference between columns the weights take over: half, as in the paper."""
_LEAST: Final = 1e-5  # of a column's largest number, so that one that is always 0 is not divided by


def smooth(graph: ModelProto, batches: Sequence[Mapping[str, NDArray[np.int64]]], left: Container[str]) -> None:
    """Even out, in place, all that layer norms give to products with weights.

    Args:
        graph: Of an encoder.
        batches: What it is run on to see its columns: input_ids and attention_mask (B, T), each by its name.
        left: Names of products that stay as they are.
    """
    users = _users(graph)
    weights = {weight.name: weight for weight in graph.graph.initializer if len(users[weight.name]) == 1}
    norms = {node.output[0]: node for node in graph.graph.node if node.op_type == "LayerNormalization"}
    read = {value: [node for node in users[value] if _is_product(node, weights, left)] for value in norms}
    fed = {value: products for value, products in read.items() if products}
    if not fed:
        return
    largest = _largest(graph, [*fed], batches)
    for value, products in fed.items():
        rows_D = np.max([np.abs(_array(weights[node.input[1]])).max(axis=1) for node in products], axis=0)
        s_D = np.maximum(largest[value], _LEAST) ** ALPHA / np.maximum(rows_D, _LEAST) ** (1 - ALPHA)
        for node in products:
            _scale(weights[node.input[1]], s_D[:, None])
        own = [weights[name] for name in norms[value].input[1:] if name in weights]
        if len(products) == len(users[value]) and len(own) == len(norms[value].input) - 1:
            for weight in own:
                _scale(weight, 1 / s_D)
        else:
            _divide(graph, value, s_D, products)


def _users(graph: ModelProto) -> defaultdict[str, list[NodeProto]]:
    users: defaultdict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.graph.node:
        for value in node.input:
            users[value].append(node)
    return users


def _is_product(node: NodeProto, weights: Container[str], left: Container[str]) -> bool:
    return node.op_type == "MatMul" and node.input[1] in weights and node.name not in left


def _largest(
    graph: ModelProto, values: Sequence[str], batches: Sequence[Mapping[str, NDArray[np.int64]]]
) -> dict[str, Vectors]:
    """Value → the largest magnitude of each of its columns over all tokens, (D,)."""
    seen = onnx.ModelProto()
    seen.CopyFrom(graph)
    seen.graph.output.extend(onnx.ValueInfoProto(name=value) for value in values)
    session = session_of(seen.SerializeToString())
    largest: dict[str, Vectors] = {}
    for batch in batches:
        real_BT = batch["attention_mask"].astype(bool)
        for value, x in zip(values, session.run(values, dict(batch)), strict=True):
            of_tokens = x.shape[:2] == real_BT.shape  # others are of positions, as DeBERTa's
            found_D = np.abs(x[real_BT] if of_tokens else x.reshape(-1, x.shape[-1])).max(axis=0)
            largest[value] = np.maximum(largest.get(value, found_D), found_D)
    return largest


def _divide(graph: ModelProto, value: str, s_D: Vectors, products: Sequence[NodeProto]) -> None:
    """Let products read a value with columns divided; others, such as the sum around a layer, read it as it was."""
    even, inverse = f"{value}_even", f"{value}_inverse"
    divide = helper.make_node("Mul", [value, inverse], [even], name=even)
    graph.graph.initializer.append(numpy_helper.from_array((1 / s_D).astype(np.float32), inverse))
    for node in products:
        node.input[0] = even
    place = next(place for place, node in enumerate(graph.graph.node) if value in node.output)
    graph.graph.node.insert(place + 1, divide)


def _scale(weight: TensorProto, by: Vectors) -> None:
    weight.CopyFrom(numpy_helper.from_array((_array(weight) * by).astype(np.float32), weight.name))


def _array(weight: TensorProto) -> Vectors:
    array: Vectors = numpy_helper.to_array(weight)
    return array
