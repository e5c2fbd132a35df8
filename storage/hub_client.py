"""What is asked of the Hub: a repository's commit and files, and their bytes, checked.

Design choices
- A repository's listing at a commit never changes, so it is kept beside its files in the Hub's own cache; so is what a
  branch meant last. What is kept is not asked for again: a second run needs no Hub.
- A fault of the Hub costs retries, then one clear line. They come by chance a little sooner or later: many workers
  whom one fault stopped at once would else come back at once. A Hub that does not answer at all is not asked again for
  a minute: a run looks for dozens of sets.
- Every file is held against the listing's digest, for a proxy's page or a broken disk has the right name too.
"""

from __future__ import annotations

import hashlib
import logging
import random
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from storage.address import shown
from storage.digest import file_sha256
from storage.errors import HubError, HubSilentError, SourceError
from storage.files import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from huggingface_hub import errors

logger = logging.getLogger(__name__)

Kind = Literal["model", "dataset"]
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
SECONDS_TO_ANSWER: Final = 10.0
SECONDS_BETWEEN_TRIES: Final = (1.0, 2.0, 4.0)  # one try more than waits
SECONDS_TO_CONNECT: Final = (0.5, 0.5)  # likewise, where a connection is refused, as while a proxy restarts
LONGEST_WAIT: Final = 60.0  # that a busy Hub may ask for
SECONDS_SILENT: Final = 60.0
_MIRROR: Final = "set BSL_DATA_MIRROR to a mirror that holds it (`bsl mirror` fills one on a connected machine)"
OFFLINE: Final = f"unset HF_HUB_OFFLINE, or {_MIRROR}"
SILENT: Final = f"run again when it does, {_MIRROR}, or set HF_HUB_OFFLINE=1 to do without what only the Hub has"
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})

_chance: Final = random.SystemRandom()  # Python's own generator is a run's

_silent: dict[str, tuple[float, str]] = {}  # endpoint → when it did not answer, and why
T = TypeVar("T")


class HubFile(BaseModel):
    """A file of a repository, by the digest that its storage has of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int | None = None
    sha256: str | None = None
    """Of what lies in LFS."""
    oid: str | None = None
    """Git's name of what does not."""

    def fits(self, path: Path) -> bool:
        """Whether a file's bytes are these, as far as the Hub says."""
        if self.sha256 is not None:
            return file_sha256(path) == self.sha256
        content = path.read_bytes() if self.oid is not None else b""
        return self.oid is None or hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == self.oid


class Listing(BaseModel):
    """A repository at a commit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    commit: str
    files: dict[str, HubFile]
    configs: list[dict[str, Any]] = Field(default=[])
    """Of a data set: its configurations and their files, as its README names them."""


def listing(kind: Kind, name: str, revision: str | None, cache: Path | None = None) -> Listing:
    """A repository's files: those of a commit that is kept, else as the Hub says now.

    Raises:
        HubError: it has no such repository or commit, refuses it, or does not answer and nothing is kept.
        SourceError: the Hub is not to be asked, and nothing is kept.
    """
    wanted = revision or "main"
    if COMMIT.fullmatch(wanted) and (kept := _kept(kind, name, wanted, cache)) is not None:
        return kept
    try:
        found = _ask(kind, name, wanted)
    except SourceError as error:
        kept = _kept(kind, name, meant(kind, name, wanted, cache), cache)
        if kept is None or (isinstance(error, HubError) and not isinstance(error, HubSilentError)):
            raise
        logger.warning("%s@%s is taken as %s, which it meant last: %s", name, wanted, kept.commit, error.finding)
        return kept
    folder = _folder(kind, name, cache)
    _write(folder / ".bsl" / f"{found.commit}.json", found.model_dump_json(exclude_none=True))
    if not COMMIT.fullmatch(wanted):
        _write(folder / "refs" / wanted, found.commit)
    return found


def meant(kind: Kind, name: str, revision: str | None, cache: Path | None = None) -> str | None:
    """The commit that a revision meant when it was last asked for; itself if it is one."""
    wanted = revision or "main"
    ref = _folder(kind, name, cache) / "refs" / wanted
    return wanted if COMMIT.fullmatch(wanted) else ref.read_text().strip() if ref.is_file() else None


def snapshot(kind: Kind, name: str, commit: str, cache: Path | None = None) -> Path:
    """The folder of a commit's files, as far as they are here."""
    return _folder(kind, name, cache) / "snapshots" / commit


def fetch(kind: Kind, name: str, listed: Listing, wanted: Iterable[str], cache: Path | None = None) -> Path:
    """Bring files of a commit here, those that are not.

    Returns:
        The folder that has them.

    Raises:
        HubError: the Hub does not give one of them, or not as it is listed.
    """
    folder = snapshot(kind, name, listed.commit, cache)
    for path in [path for path in wanted if not (folder / path).exists()]:
        address = f"{name}@{listed.commit[:12]}: {path}"
        _retried(address, lambda path=path, address=address: _download(kind, name, listed, path, cache, address))  # type: ignore[misc]
    return folder


def _download(kind: Kind, name: str, listed: Listing, path: str, cache: Path | None, address: str) -> None:
    from huggingface_hub import hf_hub_download  # the client is slow to import and most runs never need it

    found = Path(
        hf_hub_download(
            name, path, repo_type=kind, revision=listed.commit, cache_dir=cache, etag_timeout=SECONDS_TO_ANSWER
        )
    )
    if not listed.files[path].fits(found):
        for broken in {found.resolve(), found}:
            broken.unlink()
        raise HubSilentError(
            f"{address} came with other bytes than the Hub lists",
            f"look for a proxy that changes what it passes on, run again, or {_MIRROR}",
        )


def _ask(kind: Kind, name: str, revision: str) -> Listing:
    from huggingface_hub import HfApi

    api = HfApi()
    look = api.model_info if kind == "model" else api.dataset_info
    info = _retried(
        f"{name}@{revision}",
        lambda: look(name, revision=revision, timeout=SECONDS_TO_ANSWER, files_metadata=True),
    )
    files = {
        entry.rfilename: HubFile(
            size=entry.size, sha256=entry.lfs.sha256 if entry.lfs else None, oid=None if entry.lfs else entry.blob_id
        )
        for entry in info.siblings or ()
    }
    card: dict[str, Any] = dict(vars(info.card_data)) if info.card_data else {}
    return Listing(commit=str(info.sha), files=files, configs=list(card.get("configs") or ()))


def _retried(address: str, call: Callable[[], T]) -> T:
    """What a call to the Hub gives, after as many tries as faults of a moment deserve."""
    from huggingface_hub import constants

    since, why = _silent.get(constants.ENDPOINT, (-SECONDS_SILENT, ""))
    if time.monotonic() - since < SECONDS_SILENT:
        raise HubSilentError(f"{address}: the Hub does not answer ({why})", SILENT)
    waits, refused = iter(SECONDS_BETWEEN_TRIES), iter(SECONDS_TO_CONNECT)
    while True:
        try:
            return call()
        except Exception as raised:  # of the client's transport too, whose errors share no base with its own
            error = _cause(raised)
            fault, asked = judged(address, error)
            silence = _is_silence(error)
            wait = None if _is_timeout(error) else next(refused if silence else waits, None)
            if silence and wait is None:
                _silent[constants.ENDPOINT] = time.monotonic(), _line(error)
            if wait is None or asked > LONGEST_WAIT or not isinstance(fault, HubSilentError):
                raise fault from error
            logger.warning("%s; trying again", fault.finding)
            time.sleep(asked + wait * _chance.uniform(0.5, 1.5))


def _cause(error: Exception) -> Exception:
    """What went wrong where the client says that a file is not here either."""
    from huggingface_hub import errors

    inner = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else None
    return _cause(inner) if isinstance(inner, Exception) else error


def judged(address: str, error: Exception) -> tuple[SourceError, float]:
    """What an error of the client means, and the seconds that the Hub asks to wait."""
    from huggingface_hub import errors

    if isinstance(error, SourceError):
        return error, 0.0
    if isinstance(error, errors.OfflineModeIsEnabled):
        return SourceError(f"{address} is not kept here and HF_HUB_OFFLINE forbids asking the Hub", OFFLINE), 0.0
    if isinstance(error, errors.HFValidationError):
        return HubError(f"{address}: no repository can have this name ({_line(error)})", "correct the name"), 0.0
    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else None
    if isinstance(error, errors.GatedRepoError):
        remedy = f"accept its terms at {_page(error)} and set HF_TOKEN"
        return HubError(f"{address.partition(': ')[0]} is gated ({status})", remedy), 0.0
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"{address}: the repository has no such commit, tag or branch ({status})", "correct it"), 0.0
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(
            f"{address}: the Hub has no such repository, or a private one ({status})",
            "correct the name, or set HF_TOKEN to a token that may read it",
        ), 0.0
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return HubError(f"{address}: the repository has no such file ({status})", "report it to its authors"), 0.0
    if status is not None and status not in _BUSY:
        return HubError(f"{address}: the Hub refuses it ({status}: {_line(error)})", "see its page on the Hub"), 0.0
    if status is not None:
        return _busy(address, status, error.response.headers.get("Retry-After"))  # type: ignore[attr-defined]
    if _is_silence(error):
        return HubSilentError(f"{address}: the Hub does not answer ({_line(error)})", SILENT), 0.0
    return HubSilentError(f"{address}: the Hub broke off ({_line(error)})", SILENT), 0.0


def _busy(address: str, status: int, after: str | None) -> tuple[SourceError, float]:
    wait = float(after) if after and after.replace(".", "", 1).isdigit() else 0.0
    if status != 429:
        return HubSilentError(f"{address}: the Hub fails ({status})", SILENT), wait
    remedy = f"wait {wait:.0f} s and run again" if wait else "run again later"
    return HubSilentError(f"{address}: the Hub takes no more requests (429)", f"{remedy}, set HF_TOKEN"), wait


def _is_silence(error: Exception) -> bool:
    """Whether no connection came about, which the next repository would not change."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"ConnectError", "ConnectTimeout", "ConnectionError", "ProxyError"})


def _is_timeout(error: Exception) -> bool:
    """Whether the wait for a connection has been long already, in which the system tried more than once."""
    return "ConnectTimeout" in {kind.__name__ for kind in type(error).__mro__}


def _page(error: errors.HfHubHTTPError) -> str:
    """The page of the repository that an answer is about."""
    found = re.match(
        r"(.*?)(?:/api)?((?:/datasets|/models)?/[^/]+/[^/]+)/(?:resolve|revision|tree)/", str(error.response.url)
    )
    return shown(f"{found[1]}{found[2].removeprefix('/models')}" if found else str(error.response.url))


def _line(error: Exception) -> str:
    return shown((str(error).strip() or type(error).__name__).splitlines()[0])


def _folder(kind: Kind, name: str, cache: Path | None) -> Path:
    from huggingface_hub import constants

    return Path(cache or constants.HF_HUB_CACHE) / f"{kind}s--{name.replace('/', '--')}"


def _kept(kind: Kind, name: str, commit: str | None, cache: Path | None) -> Listing | None:
    path = _folder(kind, name, cache) / ".bsl" / f"{commit}.json"
    try:
        return Listing.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValueError as error:
        logger.warning("%s is damaged and asked for again: %s", path, str(error).splitlines()[0])
        return None


def _write(path: Path, text: str) -> None:
    with whole(path) as made:
        made.write_text(text, encoding="utf-8")
