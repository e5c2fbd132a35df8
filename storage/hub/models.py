"""Models of the Hub: the files that are read of one, fetched by `snapshot_download`."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

from storage.artifacts.keys import NotInKey
from storage.errors import HubError, SourceError
from storage.hub.repositories import COMMIT, Listing, fetch, last_commit, listing, snapshot
from storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_SETTINGS: Final = (".json", ".txt", ".model", ".spm", ".bpe", ".vocab", ".md", ".jinja")
_TENSORS: Final = ".safetensors"
_PICKLES: Final = re.compile(r"^pytorch_model(-\d+-of-\d+)?\.bin$")
_GRAPH: Final = re.compile(r"\.onnx(_data)?$")  # ONNX, with weights in the file or beside it
_MODULE: Final = re.compile(r"[1-9]\d*_")  # a head's folder, behind the transformer's
_OTHER_RUNTIMES: Final = frozenset({"onnx", "openvino", "coreml", "original", "gguf", ".cache"})
_LIGHT: Final = 1 << 20  # bytes; a module's weights that say how it works, but no network's


class HubModel(Record):
    """A model on the Hub at a commit, fetched when somebody asks for its folder."""

    hub_id: str
    """`organisation/name`."""
    commit: str
    """Full commit."""
    cache: Annotated[Path | None, NotInKey] = None
    """Where the Hub's files are kept; its own default if None."""

    def fetched(self, *, settings_only: bool = False) -> Path:
        """A local folder with settings, tokenizer and, unless only settings are wanted, the weights.

        Raises:
            SourceError: the cache does not hold it, and the Hub does not give it.
        """
        listed = self._listed()
        if listed is None:
            return self._snapshot
        names = model_files(listed.files)
        if settings_only:
            names = tuple(n for n in names if _says_how(n, listed.files[n].size))
        return fetch("model", self.hub_id, listed, names, self.cache)

    def check(self) -> bool:
        """Whether its files are here; if not, the Hub has said that it has them."""
        listed = self._listed()
        return listed is None or all((self._snapshot / name).exists() for name in model_files(listed.files))

    @property
    def _snapshot(self) -> Path:
        return snapshot("model", self.hub_id, self.commit, self.cache)

    def _listed(self) -> Listing | None:
        """The files of the commit; None if only another program's copy with settings and weights is to be had."""
        try:
            return listing("model", self.hub_id, self.commit, self.cache)
        except SourceError:
            settings = any((self._snapshot / name).is_file() for name in ("config.json", "modules.json"))
            if settings and any(_is_weights(path.name) for path in self._snapshot.rglob("*")):
                return None
            raise


def pin_model(hub_id: str, revision: str | None, cache: Path | None = None) -> str:
    """The commit that a model's revision means now; a full commit is taken as it is.

    Raises:
        SourceError: the Hub has no such model, or does not answer and nothing is kept of it.
    """
    if revision and COMMIT.fullmatch(revision):
        return revision
    try:
        return listing("model", hub_id, revision, cache).commit
    except SourceError as error:
        commit = last_commit("model", hub_id, revision, cache)  # by any other program that fetched it
        if commit is None or type(error) is HubError or not snapshot("model", hub_id, commit, cache).is_dir():
            raise
        return commit


def model_files(names: Iterable[str]) -> tuple[str, ...]:
    """The files of a repository that make up its model: settings, tokenizer, and each folder's weights in one form."""
    names = tuple(names)
    own = [name for name in names if not _OTHER_RUNTIMES & set(PurePosixPath(name).parts[:-1])]
    safe = {PurePosixPath(name).parent for name in own if name.endswith(_TENSORS)}
    wanted = [
        name
        for name in own
        if name.endswith((*_SETTINGS, _TENSORS))
        or (_PICKLES.fullmatch(PurePosixPath(name).name) and PurePosixPath(name).parent not in safe)
    ]
    return tuple(sorted([*wanted, *_graphs(names)]))


def _graphs(names: Sequence[str]) -> list[str]:
    """What stands in the place of a transformer's weights where there are none: the usual graph, else all."""
    found = [name for name in names if str(PurePosixPath(name).parent) in {".", "onnx"} and _GRAPH.search(name)]
    if any(_is_weights(name) and not _GRAPH.search(name) and not _MODULE.match(name) for name in names):
        return []
    return [name for name in found if PurePosixPath(name).name.startswith("model.onnx")] or found


def _says_how(name: str, size: int | None) -> bool:
    """Whether a file of a model says how it works: settings, and weights too light to be a network's."""
    return not _is_weights(name) or (size or _LIGHT) < _LIGHT


def _is_weights(name: str) -> bool:
    """Whether a file of a model's folder holds weights, in a form that is read here."""
    return name.endswith(_TENSORS) or any(kind.search(PurePosixPath(name).name) for kind in (_PICKLES, _GRAPH))
