"""Pretrained models: where their folder is, and an identity that is the same on every machine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Final

import fsspec
from pydantic import BaseModel, ConfigDict

from storage.artifacts.keys import NotInKey
from storage.assets.catalog import EMBEDDED, embedded_manifest, embedded_path
from storage.errors import HubError, HubSilentError, SourceError
from storage.filesystem.digests import content_sha256, folder_sha256s
from storage.filesystem.nearest import perhaps_path
from storage.filesystem.urls import at_home
from storage.hub.models import HubModel, pin_model
from storage.sources.mirrored_model import SAYS, MirroredModel, check_model, find_mirrored

logger = logging.getLogger(__name__)

GRAPH: Final = ".onnx"
_WEIGHTS: Final = ("*.safetensors", "pytorch_model*.bin")


class ResolvedModel(BaseModel):
    """A model that was found, whether its bytes are here or not."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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
        """As `folder`, perhaps without the weights: what says how the model works.

        Raises:
            SourceError: as `folder`.
        """
        return self._folder(settings_only=True)

    def _folder(self, *, settings_only: bool) -> Path:
        if self.hub is not None:
            return self.hub.fetched(settings_only=settings_only)
        if self.mirrored is not None:
            return self.mirrored.fetched(settings_only=settings_only)
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
        return ResolvedModel(identity=copy.identity, mirrored=copy)
    if spec.count("/") > 1 or spec.startswith((".", "/", "~")):
        raise _no_folder(spec)
    return None


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
    return SourceError(f"{spec}: no such folder{hint}; expected a model with {' or '.join(SAYS)}; correct the path")


def _local(folder: Path) -> ResolvedModel:
    check_model(str(folder), (path.name for path in folder.iterdir()))
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
