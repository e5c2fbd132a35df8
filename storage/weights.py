"""Pretrained models: where their folder is, and an identity that is the same on every machine."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from storage.digest import file_sha256
from storage.embedded import EMBEDDED, embedded_digest, embedded_path
from storage.errors import SourceError
from storage.hub import COMMIT, download_model, pin_model
from storage.keys import NotInKey
from storage.mirror_record import RECORD, model_origin

logger = logging.getLogger(__name__)


class ResolvedModel(BaseModel):
    """A model that was found."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    folder: Annotated[Path, NotInKey]
    """Local folder with weights, configuration and tokenizer, as `from_pretrained` takes it."""
    identity: str
    """`sha256:…` of a folder's content, `embedded:<name>@…` or `<hub id>@<commit>`; belongs into artifact keys."""


def resolve_model(
    spec: str, revision: str | None = None, mirror: str | None = None, cache: Path | None = None
) -> ResolvedModel:
    """Find a model.

    Args:
        spec: a local folder, `embedded:<name>` or a Hub id.
        revision: commit, tag or branch of a Hub model.
        mirror: local folder that may hold `models/<hub id>/`; its record must not name another commit than asked for.
        cache: where the Hub's files are kept; its own default if None.

    Raises:
        SourceError: nobody has it, or the mirror has another revision.
        AssetError: no such embedded asset.
    """
    if (found := _here(spec, revision, mirror)) is not None:
        return found
    folder, commit = download_model(spec, revision, cache)
    return ResolvedModel(folder=folder, identity=f"{spec}@{commit}")


def find_model(spec: str, revision: str | None = None, mirror: str | None = None) -> str:
    """The identity of a model, asking the Hub only whether it has it.

    Raises:
        SourceError, AssetError: as `resolve_model`.
    """
    found = _here(spec, revision, mirror)
    return found.identity if found is not None else f"{spec}@{pin_model(spec, revision)}"


def _here(spec: str, revision: str | None, mirror: str | None) -> ResolvedModel | None:
    """The model in the package, in a folder or on the mirror; None if only the Hub may have it."""
    if spec.startswith(EMBEDDED):
        name = spec.removeprefix(EMBEDDED)
        return ResolvedModel(folder=embedded_path(name), identity=f"{spec}@{embedded_digest(name)}")
    try:
        if Path(spec).is_dir():
            return _local(Path(spec))
    except OSError as error:  # a name that no disk takes, a folder that may not be read
        raise SourceError(f"{spec:.200}: cannot be read ({error.strerror}); correct the path or its access") from error
    if mirror and (folder := Path(mirror) / "models" / spec).is_dir():
        _check_revision(Path(mirror), spec, revision)
        return _local(folder)
    if spec.count("/") > 1 or spec.startswith((".", "/", "~")):
        raise SourceError(f"{spec}: no such folder; expected a model with a config.json; correct the path")
    return None


def _check_revision(mirror: Path, spec: str, revision: str | None) -> None:
    """Refuse a mirror's model of another commit than asked for; warn where nothing says which commit it is."""
    if revision is None or not COMMIT.fullmatch(revision):
        return
    origin = model_origin(mirror, spec)
    if origin is None or not origin.startswith(f"{spec}@"):
        logger.warning("%s: %s does not say which revision %s is; %s is taken on trust", mirror, RECORD, spec, revision)
    elif origin != f"{spec}@{revision}":
        raise SourceError(
            f"{mirror / 'models' / spec} is {origin}, expected revision {revision}; delete the folder and run "
            f"`bsl mirror {mirror} model:{spec}@{revision}`, or ask for the mirror's own revision"
        )


def _local(folder: Path) -> ResolvedModel:
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
        raise SourceError(
            f"{folder} is no model: it holds {held}, expected config.json; give the folder of a saved model"
        )
    return ResolvedModel(folder=folder.resolve(), identity=f"sha256:{_folder_digest(folder)}")


def _folder_digest(folder: Path) -> str:
    """sha256 over names and contents of a folder's files; hidden ones, which clients leave behind, do not count."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part.startswith(".") for part in name.split("/")):
            digest.update(f"{name}\0{file_sha256(path)}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()
