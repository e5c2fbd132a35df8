"""Files of a model's folder: settings, weights and ONNX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS: Final = ("config.json", "modules.json")  # a model's folder contains at least one of them
WEIGHTS: Final = "model.safetensors"
PICKLED: Final = "pytorch_model.bin"
GRAPH: Final = ".onnx"
GRAPH_FOLDER: Final = "onnx"  # folder of graphs
DEFAULT_GRAPH: Final = "model.onnx"
CLASSIFIER: Final = "classifier"  # folder of a classifier on its encoder's vectors
CLASSIFIER_SETTINGS: Final = "classifier.json"
_WEIGHTS: Final = ("*.safetensors", "pytorch_model*.bin")


def has_weights(folder: Path) -> bool:
    """Return whether a folder contains weights of a network."""
    return any(path.is_file() for pattern in _WEIGHTS for path in folder.glob(pattern))


def graphs_of(folder: Path) -> list[Path]:
    """Return the ONNX graphs of a model's folder, in it or in its subfolder `onnx`."""
    return sorted([*folder.glob(f"*{GRAPH}"), *(folder / GRAPH_FOLDER).glob(f"*{GRAPH}")])


def settings_of(path: Path) -> Path:
    """Return the folder with a model's settings: the model's folder, or the folder of an ONNX graph or of `onnx/`."""
    if path.suffix != GRAPH:
        return path
    return path.parent.parent if path.parent.name == GRAPH_FOLDER else path.parent


def is_graph(path: Path) -> bool:
    """Return whether a path is an ONNX graph, or a folder that contains one and no other weights."""
    if path.suffix == GRAPH:
        return True
    return not any(map(has_weights, (path, *path.glob("0_*")))) and any(path.glob(f"**/*{GRAPH}"))
