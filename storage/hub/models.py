"""Fetch a model's necessary files from the Hub, by `snapshot_download`."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from bsl.storage.errors import SourceError
from bsl.storage.hub.repositories import HubCommit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bsl.storage.hub.listing import Listing


_SETTINGS: Final = (".json", ".txt", ".model", ".spm", ".bpe", ".vocab", ".md", ".jinja")
_TENSORS: Final = ".safetensors"
_PICKLES: Final = re.compile(r"^pytorch_model(-\d+-of-\d+)?\.bin$")
_GRAPH: Final = re.compile(r"\.onnx(_data)?$")  # ONNX, with weights in the same file or a separate one
_MODULE: Final = re.compile(r"[1-9]\d*_")  # a head's folder, numbered after the transformer's
_OTHER_RUNTIMES: Final = frozenset({"onnx", "openvino", "coreml", "original", "gguf", ".cache"})
_LIGHT: Final = 1 << 20  # bytes; smaller files of weights belong to a head, not to a network


class HubModel(HubCommit):
    """A model on the Hub at a commit, fetched when its folder is first needed."""

    kind: Literal["model"] = "model"

    def fetched(self, *, settings_only: bool = False) -> Path:
        """Return a local folder with settings, tokenizer and, unless `settings_only`, weights.

        Raises:
            SourceError: the cache does not have the model, and the Hub does not deliver it.
        """
        listed = self._listed()
        if listed is None:
            return self.path
        names = model_files(listed)
        if settings_only:
            # The weights of a head are included, because its width is a setting.
            names = tuple(n for n in names if not _is_weights(n) or (listed[n].size or _LIGHT) < _LIGHT)
        return self.fetch(names)

    def check(self) -> bool:
        """Return whether the files are local and complete; if not, check that the Hub lists them."""
        listed = self._listed()
        return listed is None or not self.lacking(model_files(listed))

    def _listed(self) -> Listing | None:
        """Return the files of the commit; None if unknown, but another program cached settings and weights."""
        try:
            return self.files()
        except SourceError:
            settings = any((self.path / name).is_file() for name in ("config.json", "modules.json"))
            if settings and any(_is_weights(path.name) for path in self.path.rglob("*")):
                return None
            raise


def model_files(names: Iterable[str]) -> tuple[str, ...]:
    """Return the necessary files of a model: settings, tokenizer, and the weights of each folder in one format."""
    names = tuple(names)
    candidates = [name for name in names if not _OTHER_RUNTIMES & set(PurePosixPath(name).parts[:-1])]
    safe = {PurePosixPath(name).parent for name in candidates if name.endswith(_TENSORS)}
    files = [
        name
        for name in candidates
        if name.endswith((*_SETTINGS, _TENSORS))
        or (_PICKLES.fullmatch(PurePosixPath(name).name) and PurePosixPath(name).parent not in safe)
    ]
    return tuple(sorted([*files, *_graphs(names)]))


def _graphs(names: Sequence[str]) -> list[str]:
    """Return the ONNX graphs of a transformer without weights: `model.onnx` if it exists, else all."""
    found = [name for name in names if str(PurePosixPath(name).parent) in {".", "onnx"} and _GRAPH.search(name)]
    if any(_is_weights(name) and not _GRAPH.search(name) and not _MODULE.match(name) for name in names):
        return []
    return [name for name in found if PurePosixPath(name).name.startswith("model.onnx")] or found


def _is_weights(name: str) -> bool:
    """Return whether a model's file contains weights in a supported format."""
    return name.endswith(_TENSORS) or any(kind.search(PurePosixPath(name).name) for kind in (_PICKLES, _GRAPH))
