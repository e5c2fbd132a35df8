"""Find pretrained models: a local folder, and an identity that is equal on every machine."""

from __future__ import annotations

import logging
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import fsspec
from fsspec.implementations.local import LocalFileSystem

from bsl.storage.assets.catalog import embedded_manifest
from bsl.storage.assets.embedded import EMBEDDED, MODELS, embedded_folder, embedded_names, embedded_path
from bsl.storage.errors import HubError, HubSilentError, SourceError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.caches import copy_folder, filling
from bsl.storage.filesystem.digests import content_sha256, folder_sha256s
from bsl.storage.filesystem.model_folder import GRAPH, SETTINGS, settings_of
from bsl.storage.filesystem.names import MANIFEST, is_inside
from bsl.storage.filesystem.secrets import without_password
from bsl.storage.filesystem.spelling import did_you_mean, perhaps_path
from bsl.storage.filesystem.urls import at_home, reachable
from bsl.storage.hub.faults import REMEDIES
from bsl.storage.hub.models import HubModel
from bsl.storage.hub.repositories import Repository, cached_models
from bsl.storage.record import NotInKey, Record

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)

_CONTENT: Final = "sha256:"  # begins the identity of a folder
_OWNER: Final = "sentence-transformers"  # as in that library, the owner of names such as `all-MiniLM-L6-v2`
_HUB_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
_REMEDIES: Final = REMEDIES["model"]
_INSTEAD: Final = (
    f"name a folder with the model or one of the package, such as {EMBEDDED}mini-sentence, or set HF_HOME to a cache "
    "that contains it (`bsl mirror FOLDER model:NAME` fills one on a connected machine)"
)


class MirroredModel(Record):
    """A model's folder in a BSL_DATA_MIRROR on an object store, copied on first use."""

    address: str
    digest: str
    """sha256 of the files' names and contents."""
    names: tuple[str, ...]
    """The files, relative to the address and below it."""
    cache: Path | None = None
    """Folder of the copies; as `bsl.storage.filesystem.caches` chooses if None."""

    def fetched(self) -> Path:
        """Return a local folder with the files; copy them if necessary.

        Raises:
            SourceError: a file cannot be copied, or has changed since the model was found.
            StoreWriteError: the cache cannot be written.
        """
        if not self._copy.is_dir():
            with filling(self._copy), reachable(self.address), atomic_write(self._copy, keep_existing=True) as staged:
                fs, root = fsspec.url_to_fs(self.address)
                for name in self.names:
                    (staged / name).parent.mkdir(parents=True, exist_ok=True)
                    fs.get_file(f"{root}/{name}", str(staged / name))
                if content_sha256(folder_sha256s(fsspec.filesystem("file"), str(staged))) != self.digest:
                    raise SourceError(f"{self.address} has changed since it was found. Run again.")
        return self._copy

    def check(self) -> bool:
        """Return whether the files are on this machine."""
        return self._copy.is_dir()

    @property
    def _copy(self) -> Path:
        return copy_folder(self.cache, "models", self.digest[:16])


class ResolvedModel(Record):
    """A model that was found; its files may not be local yet."""

    identity: str
    """`sha256:…` of a folder's content, `embedded:<name>@…` or `<hub id>@<commit>`; part of artifact keys."""
    location: Annotated[Path | MirroredModel | HubModel, NotInKey]
    """Local folder or graph, or the model on an object store or the Hub."""

    @property
    def name(self) -> str:
        """Name in messages: the place of a folder, else the identity, without the digest of an embedded model."""
        if not self.identity.startswith(_CONTENT):
            return self.identity.partition("@")[0] if self.identity.startswith(EMBEDDED) else self.identity
        return self.location.address if isinstance(self.location, MirroredModel) else str(self.location)

    @property
    def folder(self) -> Path:
        """Local folder with weights, configuration and tokenizer, valid for `from_pretrained`; fetched if necessary.

        Raises:
            SourceError: the Hub or the mirror does not deliver it.
        """
        return self.location if isinstance(self.location, Path) else self.location.fetched()

    @property
    def described(self) -> Path:
        """As `folder`, but without the weights of a Hub model's network."""
        return self.location.fetched(settings_only=True) if isinstance(self.location, HubModel) else self.folder


def resolve_model(
    spec: str, revision: str | None = None, mirror: str | None = None, cache: Path | None = None
) -> ResolvedModel:
    """Find a model; its files are fetched only when its folder is read.

    Args:
        spec: a local folder, an ONNX graph, `embedded:<name>` or a Hub id.
        revision: commit, tag or branch of a Hub model.
        mirror: folder or fsspec address that may contain `models/<hub id>/`.
        cache: folder for copies of an object store's files.

    Raises:
        ValueError: an address contains a password.
        SourceError: the model was found nowhere.
        AssetError: no such embedded asset.
    """
    if (found := _without_hub(without_password(spec), revision, mirror, cache)) is not None:
        return found
    model = _on_hub(spec, revision)
    try:
        model.check()
    except SourceError as error:
        if isinstance(error, HubError) and not isinstance(error, HubSilentError):
            raise
        # Perhaps no stage needs the model; a stage that needs it raises the error again.
        logger.warning("%s may not be available: %s", model.name, error.finding)
    return ResolvedModel(identity=f"{model.name}@{model.commit}", location=model)


def _on_hub(spec: str, revision: str | None) -> HubModel:
    """Return the model at a commit; a name without an owner may be short for one of sentence-transformers.

    Raises:
        SourceError: The Hub and its cache have neither name; the error is about the first.
    """
    fault: SourceError | None = None
    for name in _names(spec):
        try:
            return HubModel(name=name, commit=Repository(kind="model", name=name).pinned(revision))
        except SourceError as error:
            fault = fault or error
    assert fault is not None
    first = {_REMEDIES.offline: "unset HF_HUB_OFFLINE", _REMEDIES.silent: "run again later"}.get(fault.remedy)
    if first is None:
        raise fault
    known = [name if "/" in spec else name.removeprefix(f"{_OWNER}/") for name in cached_models()]
    hint = did_you_mean(spec, known).strip()
    remedy = f"{first}, check the name, {_INSTEAD}"
    raise type(fault)(
        f"{fault.finding}{perhaps_path(spec)}", f"{hint} {remedy[0].upper()}{remedy[1:]}" if hint else remedy
    ) from fault


def _names(spec: str) -> tuple[str, ...]:
    return (spec,) if "/" in spec else (spec, f"{_OWNER}/{spec}")


def _without_hub(spec: str, revision: str | None, mirror: str | None, cache: Path | None) -> ResolvedModel | None:
    """Return the model of the package, a folder or the mirror; None if only the Hub may have it."""
    if spec.startswith(EMBEDDED):
        name = spec.removeprefix(EMBEDDED)
        return ResolvedModel(identity=f"{spec}@{embedded_manifest(name).digest}", location=embedded_path(name))
    path = Path(at_home(spec))
    try:
        if path.is_dir():
            return _local(path)
        if spec.endswith(GRAPH) and path.is_file():  # its folder has the settings
            identity = f"{_local(settings_of(path)).identity}/{path.name}"
            return ResolvedModel(identity=identity, location=path.resolve())
        if path.is_file():
            raise _no_folder(spec)
    except OSError as error:  # an invalid file name, or an unreadable folder
        raise SourceError(
            f"{spec:.200}: cannot be read ({error.strerror}). Correct the path or its permissions."
        ) from error
    for name in _names(spec) if mirror else ():
        if (found := find_mirrored(str(mirror), name, revision, cache)) is not None:
            return found
    if spec.count("/") > 1 or spec.startswith((".", "/", "~")):
        raise _no_folder(spec)
    return None


def find_mirrored(mirror: str, hub_id: str, revision: str | None, cache: Path | None = None) -> ResolvedModel | None:
    """Return the copy of a Hub model in BSL_DATA_MIRROR; None if it has none.

    The requested commit cannot be checked, because a mirror does not record it.

    Raises:
        SourceError: the mirror cannot be read, its folder contains no model, or a file name leads out of the folder.
    """
    with reachable(mirror):
        fs, root = fsspec.url_to_fs(mirror)
        folder = f"{root.rstrip('/')}/models/{hub_id}"
        if not fs.isdir(folder):
            return None
        address = str(fs.unstrip_protocol(folder))
        files = folder_sha256s(fs, folder)
    _check_model(address, files)
    if outside := [name for name in files if not is_inside(name)]:  # an object store accepts any name
        raise SourceError(
            f"{address}: the file name {outside[0]!r:.80} leads out of the folder, expected a relative path "
            "without empty parts, `.` or `..`. Delete the file, and ask the person who wrote it."
        )
    if revision is not None:
        logger.warning("%s is assumed to be revision %s, because a mirror does not record revisions", address, revision)
    digest = content_sha256(files)
    on_store = MirroredModel(address=address, digest=digest, names=tuple(files), cache=cache)
    location = Path(folder).resolve() if isinstance(fs, LocalFileSystem) else on_store
    return ResolvedModel(identity=f"{_CONTENT}{digest}", location=location)


def _check_model(address: str, names: Iterable[str]) -> None:
    """Refuse a folder without a model's settings, by its relative file names."""
    tops = {name.partition("/")[0] for name in names}
    if not tops.intersection(SETTINGS):
        found = ", ".join(sorted(tops)[:10]) or "nothing"
        raise SourceError(
            f"{address} is not a model: it contains {found}, expected {' or '.join(SETTINGS)}. Give the folder of a "
            "saved model."
        )


def check_model_name(spec: str, mirror: str | None = None) -> None:
    """Refuse a name that no model can have, and a path without a model; arguments as for `resolve_model`, without Hub.

    Raises:
        SourceError, AssetError: no such folder or embedded asset, and the message suggests the nearest; or it contains
            no model.
    """
    if not spec.strip():
        raise SourceError(
            f"{spec!r} is an empty name, expected a folder, a name on the Hub (OWNER/NAME), or {EMBEDDED}NAME."
        )
    is_embedded = without_password(spec).startswith(EMBEDDED)
    path = embedded_folder(spec.removeprefix(EMBEDDED), kinds=MODELS) if is_embedded else Path(at_home(spec))
    with suppress(OSError):  # `resolve_model` explains an invalid or unreadable path
        if path.is_dir():
            _check_model(spec, (file.name for file in path.iterdir()))
            return
    is_path = spec.startswith((".", "/", "~")) or (mirror is None and spec.count("/") > 1)
    if path.is_file() and spec.endswith(GRAPH):
        return
    if is_path or path.is_file():
        raise _no_folder(spec)
    known = embedded_names(kinds=MODELS)
    if _HUB_NAME.fullmatch(spec) is None:
        raise SourceError(
            f"{spec[:100]}: no such model.{did_you_mean(spec, [f'{EMBEDDED}{name}' for name in known])} "
            f"Expected a folder, a name on the Hub (OWNER/NAME), or {EMBEDDED}NAME. Correct the name."
        )
    if spec in known:
        raise SourceError(f"{spec}: is an embedded model. Write {EMBEDDED}{spec}.")


def is_made_here(name: str) -> bool:
    """Return whether an encoder's name is of a run's checkpoint or report, and not of a local file or folder."""
    path = Path(name)
    is_local = path.exists() and not (path / MANIFEST).exists()  # in the store's own folder, the name is an artifact's
    return name.startswith(("checkpoint/", "report/")) and not is_local


def check_revision(name: str, revision: str | None) -> None:
    """Refuse a revision of an encoder that cannot be on the Hub, where it would have no effect.

    Raises:
        ValueError: The name is of an embedded encoder, a path or an artifact.
    """
    if revision is not None and (is_made_here(name) or name.startswith((EMBEDDED, ".", "/", "~"))):
        raise ValueError(f"{name}: not on the Hub, so it has no revision {revision}. Remove the revision.")


def _no_folder(spec: str) -> SourceError:
    """Return the error of a path that is no folder, or that is a file."""
    path, expected = Path(at_home(spec)), f"expected a model's folder with {' or '.join(SETTINGS)}"
    if not path.is_file():
        return SourceError(f"{spec}: no such folder{perhaps_path(spec)}, {expected}. Correct the path.")
    is_model = any((path.parent / name).exists() for name in SETTINGS)
    remedy = f"Name its folder: {shlex.quote(str(path.parent))}" if is_model else "Name a folder"
    return SourceError(f"{spec}: is a file, {expected}. {remedy}.")


def _local(folder: Path) -> ResolvedModel:
    _check_model(str(folder), (path.name for path in folder.iterdir()))
    files = folder_sha256s(*fsspec.url_to_fs(str(folder)))
    return ResolvedModel(identity=f"{_CONTENT}{content_sha256(files)}", location=folder.resolve())
