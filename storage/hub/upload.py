"""Upload a folder to the Hub as a new model repository, with HF_TOKEN or the Hub client's login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.storage.errors import HubError, SourceError
from bsl.storage.filesystem.os_errors import translated
from bsl.storage.hub.faults import as_source_error, cause

if TYPE_CHECKING:
    from pathlib import Path

_EXISTS: Final = 409
_REMEDIES: Final = {
    401: "set HF_TOKEN to a token with write access, or log in with `hf auth login`",
    403: "set HF_TOKEN to a token with write access there, or name your own organisation",
    _EXISTS: "name a new repository, because existing ones are not overwritten",
}


def check_repository(name: str) -> None:
    """Refuse an invalid repository name before any work is done.

    Raises:
        ValueError: it is not ORG/NAME.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # in no __all__

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{name!r} is not a valid repository name, expected ORG/NAME: {error}") from error
    if name.count("/") != 1:
        raise ValueError(f"{name!r} has no owner, expected ORG/NAME. Put your user name or organisation first.")


def push(folder: Path, name: str, *, public: bool) -> str:
    """Upload a folder in one commit.

    Args:
        folder: folder with the files; its README.md is the model card.
        name: ORG/NAME of a repository that does not exist yet.
        public: whether everyone can read the repository, or only members of ORG.

    Returns:
        The URL of the commit.

    Raises:
        HubError: the Hub refuses the upload, or does not answer.
        SourceError: HF_HUB_OFFLINE forbids the request.
    """
    from huggingface_hub import HfApi  # slow to import

    api = HfApi()
    arguments = f"{folder}{'' if public else ' --private'}"
    with translated(lambda error: _fault(error, name, arguments), ()):
        api.create_repo(name, private=not public)
        upload = api.upload_folder(repo_id=name, folder_path=folder, commit_message="Exported by bsl")
    return str(upload.commit_url)


def _fault(error: Exception, name: str, arguments: str) -> SourceError:
    """Return an error of the client, which retries by itself, with a remedy; `arguments` are of `hf upload`."""
    from huggingface_hub import errors

    inner = cause(error)
    if isinstance(inner, errors.OfflineModeIsEnabled):
        finding = f"{name}: HF_HUB_OFFLINE forbids requests to the Hub"
        return SourceError(finding, f"unset it, {_command(name, arguments)}")
    if isinstance(inner, errors.HfHubHTTPError) and (status := inner.response.status_code) in _REMEDIES:
        why = (inner.server_message or str(inner)).strip().splitlines()[0]
        target = "ORG/NEW-NAME" if status == _EXISTS else name  # `hf upload` would overwrite the existing files
        remedy = f"{_REMEDIES[status]}, {_command(target, arguments)}"
        return HubError(f"{name}: the Hub refused the upload ({status}: {why})", remedy)
    known = as_source_error(name, "model", inner)
    return type(known)(known.finding, f"wait a few minutes, {_command(name, arguments)}")


def _command(repository: str, arguments: str) -> str:
    return f"then upload the exported folder: `hf upload {repository} {arguments}`"
