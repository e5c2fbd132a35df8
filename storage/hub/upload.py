"""Upload a folder to the Hub as a new model repository, by HF_TOKEN or the Hub client's own login."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from storage.errors import HubError, SourceError
from storage.hub.faults import cause, judged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_REMEDIES: Final = {
    401: "set HF_TOKEN to a token that may write, or log in with `hf auth login`",
    403: "set HF_TOKEN to a token that may write there, or name an organisation of your own",
    409: "name a new repository, for nothing is overwritten",
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
        raise ValueError(f"{name!r} names no repository, expected ORG/NAME as the Hub has them: {error}") from error
    if name.count("/") != 1:
        raise ValueError(f"{name!r} names no repository, expected ORG/NAME; put your own or an organisation's first")


def push(folder: Path, name: str, *, public: bool) -> str:
    """Upload a folder in one commit.

    Args:
        folder: its README.md is the model card.
        name: ORG/NAME of a repository that does not exist yet.
        public: whether everyone can read it, or only members of ORG.

    Returns:
        The URL of the commit.

    Raises:
        HubError: the Hub refuses it, or does not answer.
        SourceError: HF_HUB_OFFLINE forbids the request.
    """
    from huggingface_hub import HfApi  # slow to import

    api = HfApi()
    later = f"the exported folder is still there: hf upload {name} {folder}{'' if public else ' --private'}"
    with _explained(name, later):
        api.create_repo(name, private=not public)
        made = api.upload_folder(repo_id=name, folder_path=folder, commit_message="Exported by bsl")
    return str(made.commit_url)


@contextmanager
def _explained(name: str, later: str) -> Iterator[None]:
    """Turn an error of the client, which retries by itself, into one with a remedy."""
    from huggingface_hub import errors

    try:
        yield
    except Exception as error:  # as in `faults`
        inner = cause(error)
        if isinstance(inner, errors.OfflineModeIsEnabled):
            fault = SourceError(f"{name}: HF_HUB_OFFLINE forbids asking the Hub", f"unset it; {later}")
        elif isinstance(inner, errors.HfHubHTTPError) and (status := inner.response.status_code) in _REMEDIES:
            why = (inner.server_message or str(inner)).strip().splitlines()[0]
            finding = f"{name}: the Hub refuses the upload ({status}: {why})"
            fault = HubError(finding, f"{_REMEDIES[status]}; {later}")
        else:
            judgement = judged(name, inner)
            fault = type(judgement)(judgement.finding, f"see whether it is a fault of the moment; {later}")
        raise fault from error
