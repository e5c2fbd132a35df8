"""Pretrained models: where their folder is, and an identity that is the same on every machine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import fsspec
from fsspec.implementations.local import LocalFileSystem

from storage.artifacts.keys import NotInKey
from storage.assets.catalog import embedded_manifest
from storage.assets.embedded import EMBEDDED, embedded_path
from storage.errors import HubError, HubSilentError, SourceError
from storage.filesystem.atomic import whole
from storage.filesystem.digests import content_sha256, folder_sha256s
from storage.filesystem.names import is_inside, perhaps_path
from storage.filesystem.urls import at_home, reachable
from storage.hub.models import HubModel, pin_model
from storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)

SETTINGS: Final = ("config.json", "modules.json")  # a model's folder has one of them
GRAPH: Final = ".onnx"
_WEIGHTS: Final = ("*.safetensors", "pytorch_model*.bin")


class MirroredModel(Record):
    """A model's folder in BSL_DATA_MIRROR: used in place, or copied from an object store when it is needed."""

    address: str
    """Address of the folder."""
    digest: str
    """sha256 of the files' names and contents."""
    cache: Path | None = None
    """Folder of the copy; `~/.cache/bsl` if None."""

    def fetched(self) -> Path:
        """Return a local folder with the files.

        Raises:
            SourceError: a file cannot be copied, or has changed since the model was found.
        """
        fs, root = fsspec.url_to_fs(self.address)
        if isinstance(fs, LocalFileSystem):
            return Path(root).resolve()
        if not self._copy.is_dir():
            with reachable(self.address), whole(self._copy, first_stays=True) as made:
                files = _mirrored_files(self.address)
                if content_sha256(files) != self.digest:
                    raise SourceError(f"{self.address} has changed since it was found; run again")
                for name in files:
                    (made / name).parent.mkdir(parents=True, exist_ok=True)
                    fs.get_file(f"{root}/{name}", str(made / name))
                if folder_sha256s(fsspec.filesystem("file"), str(made)) != files:
                    raise SourceError(f"{self.address} has changed while it was copied; run again")
        return self._copy

    def check(self) -> bool:
        """Return whether the files are on this machine."""
        return self._copy.is_dir() or isinstance(fsspec.url_to_fs(self.address)[0], LocalFileSystem)

    @property
    def _copy(self) -> Path:
        return (self.cache or Path.home() / ".cache" / "bsl") / "models" / self.digest[:16]


class ResolvedModel(Record):
    """A model that was found, whether its bytes are here or not."""

    identity: str
    """`sha256:…` of a folder's content, `embedded:<name>@…` or `<hub id>@<commit>`; belongs into artifact keys."""
    place: Annotated[Path | None, NotInKey] = None
    """Local folder, unless it is the Hub's or a mirror's."""
    mirrored: Annotated[MirroredModel | None, NotInKey] = None
    """The mirror's copy, if it is one."""
    hub: Annotated[HubModel | None, NotInKey] = None
    """The Hub's model, if it is one."""

    @property
    def folder(self) -> Path:
        """Local folder with weights, configuration and tokenizer, as `from_pretrained` takes it; fetched if need be.

        Raises:
            SourceError: the Hub or the mirror does not give it.
        """
        return self._folder(settings_only=False)

    @property
    def described(self) -> Path:
        """As `folder`, perhaps without the weights: what says how the model works."""
        return self._folder(settings_only=True)

    def _folder(self, *, settings_only: bool) -> Path:
        if self.hub is not None:
            return self.hub.fetched(settings_only=settings_only)
        if self.mirrored is not None:
            return self.mirrored.fetched()
        assert self.place is not None
        return self.place


def resolve_model(
    spec: str, revision: str | None = None, mirror: str | None = None, cache: Path | None = None
) -> ResolvedModel:
    """Find a model; nothing of it is fetched before its folder is asked for.

    Args:
        spec: a local folder, an ONNX graph in one, `embedded:<name>` or a Hub id.
        revision: commit, tag or branch of a Hub model.
        mirror: folder or fsspec address that may hold `models/<hub id>/`.
        cache: where copies of an object store's files go; `~/.cache/bsl` if None.

    Raises:
        SourceError: nobody has it.
        AssetError: no such embedded asset.
    """
    if (found := _here(spec, revision, mirror, cache)) is not None:
        return found
    model = HubModel(hub_id=spec, commit=pin_model(spec, revision))
    try:
        model.check()
    except SourceError as error:
        if isinstance(error, HubError) and not isinstance(error, HubSilentError):
            raise
        # Perhaps no stage needs it; one that does will say so again.
        logger.warning("%s may be had or not: %s", spec, error.finding)
    return ResolvedModel(identity=f"{spec}@{model.commit}", hub=model)


def _here(spec: str, revision: str | None, mirror: str | None, cache: Path | None) -> ResolvedModel | None:
    """The model in the package, in a folder or on the mirror; None if only the Hub may have it."""
    if spec.startswith(EMBEDDED):
        name = spec.removeprefix(EMBEDDED)
        return ResolvedModel(place=embedded_path(name), identity=f"{spec}@{embedded_manifest(name).digest}")
    place = Path(at_home(spec))
    try:
        if place.is_dir():
            return _local(place)
        if spec.endswith(GRAPH) and place.is_file():
            return _graph(place)
    except OSError as error:  # a name that no disk takes, a folder that may not be read
        raise SourceError(f"{spec:.200}: cannot be read ({error.strerror}); correct the path or its access") from error
    if mirror and (copy := find_mirrored(mirror, spec, revision, cache)) is not None:
        return ResolvedModel(identity=f"sha256:{copy.digest}", mirrored=copy)
    if spec.count("/") > 1 or spec.startswith((".", "/", "~")):
        raise _no_folder(spec)
    return None


def find_mirrored(mirror: str, hub_id: str, revision: str | None, cache: Path | None = None) -> MirroredModel | None:
    """Return the copy of a Hub model in BSL_DATA_MIRROR; None if there is none.

    Args:
        mirror: folder or fsspec address.
        hub_id: `organisation/name`.
        revision: requested commit; the copy does not name its own.
        cache: folder for a copy of an object store's files.

    Raises:
        SourceError: the mirror cannot be read, its folder has no model, or a file name leads out of the folder.
    """
    with reachable(mirror):
        fs, root = fsspec.url_to_fs(mirror)
        folder = f"{root.rstrip('/')}/models/{hub_id}"
        if not fs.isdir(folder):
            return None
        address = str(fs.unstrip_protocol(folder))
        files = _mirrored_files(address)
    _check_model(address, files)
    if revision is not None:
        logger.warning("%s is taken on trust as revision %s", address, revision)
    return MirroredModel(address=address, digest=content_sha256(files), cache=cache)


def _mirrored_files(address: str) -> dict[str, str]:
    """Each file's sha256 by its relative name."""
    files = folder_sha256s(*fsspec.url_to_fs(address))
    for name in files:
        if not is_inside(name):  # an object store takes any
            raise SourceError(
                f"{address}: the name {name!r:.80} of a file leads out of the folder, expected a relative one without "
                "empty parts, . and ..; delete the file, and ask who wrote it"
            )
    return files


def _check_model(address: str, names: Iterable[str]) -> None:
    """Refuse a folder of files by these relative names that is no model's."""
    tops = {name.partition("/")[0] for name in names}
    if not tops.intersection(SETTINGS):
        found = ", ".join(sorted(tops)[:10]) or "nothing"
        raise SourceError(
            f"{address} is not a model: it contains {found}, expected {' or '.join(SETTINGS)}; give the folder of a "
            "saved model"
        )


def check_model_name(spec: str, mirror: str | None = None) -> None:
    """Refuse the name of a model that neither the package nor this machine has; the Hub is not asked.

    Args:
        spec: as `resolve_model` takes it.
        mirror: folder or address that may have the model.

    Raises:
        SourceError: no such folder; the message has the nearest.
        AssetError: no such embedded asset; the message has the nearest.
    """
    if spec.startswith(EMBEDDED):
        embedded_manifest(spec.removeprefix(EMBEDDED))
        return
    is_path = spec.startswith((".", "/", "~")) or (mirror is None and spec.count("/") > 1)
    if is_path and not Path(at_home(spec)).exists():
        raise _no_folder(spec)


def _no_folder(spec: str) -> SourceError:
    hint = perhaps_path(spec)
    return SourceError(f"{spec}: no such folder{hint}; expected a model with {' or '.join(SETTINGS)}; correct the path")


def _local(folder: Path) -> ResolvedModel:
    _check_model(str(folder), (path.name for path in folder.iterdir()))
    files = folder_sha256s(*fsspec.url_to_fs(str(folder)))
    return ResolvedModel(place=folder.resolve(), identity=f"sha256:{content_sha256(files)}")


def _graph(path: Path) -> ResolvedModel:
    """A graph of a model's folder, which says the rest."""
    return ResolvedModel(place=path.resolve(), identity=f"{_local(settings_of(path)).identity}/{path.name}")


def settings_of(place: Path) -> Path:
    """The folder of a model's settings: itself, or that of an ONNX graph in it or in its `onnx/`."""
    if place.suffix != GRAPH:
        return place
    return place.parent.parent if place.parent.name == GRAPH.removeprefix(".") else place.parent


def is_graph(place: Path) -> bool:
    """Whether an ONNX graph stands where a transformer's weights would: named itself, or alone in its folder."""
    if place.suffix == GRAPH:
        return True
    weights = (path for kind in _WEIGHTS for path in (*place.glob(kind), *place.glob(f"0_*/{kind}")))
    return not any(weights) and any(place.glob(f"**/*{GRAPH}"))
