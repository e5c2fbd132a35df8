"""Handle errors of the Hub: retry the temporary ones, and explain each with a message and a remedy.

`HubError`: the Hub lacks, hides or refuses a repository. `HubSilentError`: the Hub is busy, broken or unreachable.
`SourceError` itself: HF_HUB_OFFLINE forbids the request. Waits have a random part, so that many workers do not retry at
the same time. A dead endpoint gets no request for a minute, because a run looks up dozens of datasets.
"""

from __future__ import annotations

import logging
import random
import re
import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar
from urllib.parse import unquote

from bsl.storage.errors import HubError, HubSilentError, SourceError
from bsl.storage.filesystem.os_errors import first_line, message_of, not_written
from bsl.storage.filesystem.secrets import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from huggingface_hub import errors

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_TRIES: Final = (1.0, 2.0, 4.0)  # waits between four tries
SECONDS_TO_CONNECT: Final = (0.5, 0.5)  # the same if a connection is refused, for example while a proxy restarts
LONGEST_WAIT: Final = 60.0  # maximum wait that a busy Hub may request
SECONDS_SILENT: Final = 60.0
Kind = Literal["model", "dataset"]


class Remedies(NamedTuple):
    """Remedies of a repository that is not available."""

    offline: str
    silent: str
    changed: str


def _remedies(name: str, skipping: str = "") -> Remedies:
    copy = f"set HF_HOME to a cache that contains it (`bsl mirror FOLDER {name}` fills one on a connected machine)"
    return Remedies(
        offline=f"unset HF_HUB_OFFLINE, or {copy}",
        silent=f"run again later, {copy}{skipping}" if skipping else f"run again later, or {copy}",
        changed=f"check whether a proxy changes downloads, run again, or {copy}",
    )


REMEDIES: Final[Mapping[Kind, Remedies]] = {
    "model": _remedies("model:NAME"),  # no run goes on without a model
    "dataset": _remedies("NAME", ", or set HF_HUB_OFFLINE=1 to skip datasets that only the Hub has"),
}
_TIMED_OUT: Final = frozenset({"ConnectTimeout"})  # the system has already tried several times
_UNCONNECTED: Final = _TIMED_OUT | {"ConnectError", "ProxyError"}  # classes of httpx and httpx2
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST: Final = 300  # characters of the Hub's message
_FILE: Final = re.compile(r"/resolve/[^/]+/([^?]+)")

_chance: Final = random.SystemRandom()  # Python's own generator belongs to the run
_silent: dict[str, tuple[float, str]] = {}  # endpoint → time and reason of its last failure to answer
T = TypeVar("T")


def retried(address: str, kind: Kind, call: Callable[[], T]) -> T:
    """Return the result of a call to the Hub, retried on temporary errors; `address` and `kind` are for messages.

    Raises:
        HubError: the Hub refuses, fails or does not answer.
        SourceError: HF_HUB_OFFLINE forbids the request.
    """
    from huggingface_hub import constants

    since, why = _silent.get(constants.ENDPOINT, (-SECONDS_SILENT, ""))
    if time.monotonic() - since < SECONDS_SILENT and not constants.HF_HUB_OFFLINE:
        raise HubSilentError(f"{address}: the Hub does not answer ({why})", REMEDIES[kind].silent)
    waits, refused = iter(SECONDS_BETWEEN_TRIES), iter(SECONDS_TO_CONNECT)
    while True:
        try:
            return call()
        except Exception as raised:  # transport errors have no common base with the client's errors
            error = cause(raised)
            fault = as_source_error(address, kind, error)
            silence = _is_silence(error)
            timed_out = _is_silence(error, _TIMED_OUT)
            wait = None if timed_out else next(refused if silence else waits, None)
            if silence and wait is None:
                _silent[constants.ENDPOINT] = time.monotonic(), _line(error)
            if wait is None or not isinstance(fault, HubSilentError) or fault.wait > LONGEST_WAIT:
                raise fault from error
            logger.warning("%s; retrying", fault.finding)
            time.sleep(fault.wait + wait * _chance.uniform(0.5, 1.5))


def cause(error: Exception) -> Exception:
    """Return the first error of the Hub or its transport in a chain of causes, else the direct cause or the error."""
    from huggingface_hub import errors

    inner: BaseException | None = error
    while inner is not None:
        answered = isinstance(inner, errors.HfHubHTTPError | errors.OfflineModeIsEnabled | SourceError)
        if isinstance(inner, Exception) and (answered or _is_silence(inner)):
            return inner
        inner = inner.__cause__
    return error.__cause__ if isinstance(error.__cause__, Exception) else error


def as_source_error(address: str, kind: Kind, error: Exception) -> SourceError:
    """Convert a client's error to an error of this package."""
    from huggingface_hub import errors

    if isinstance(error, SourceError):
        return error
    if isinstance(error, errors.OfflineModeIsEnabled):
        finding = f"{address} is not in the cache, and HF_HUB_OFFLINE forbids requests to the Hub"
        return SourceError(finding, REMEDIES[kind].offline)
    if isinstance(error, errors.HFValidationError):
        return HubError(f"{address}: not a valid repository name ({_line(error)})", "correct the name")
    if isinstance(error, errors.HfHubHTTPError):
        return _answered(address, kind, error)
    if why := not_written(error):
        return HubError(f"{address}: cannot write to the Hub's cache: {why}")
    if isinstance(error, PermissionError):
        finding = f"{address}: the Hub's cache cannot be used ({_line(error)})"
        return HubError(finding, "correct its permissions, or set HF_HOME to a folder of your own")
    if _is_silence(error):
        return HubSilentError(f"{address}: the Hub does not answer ({_line(error)})", REMEDIES[kind].silent)
    return HubSilentError(f"{address}: the request to the Hub failed ({_line(error)})", REMEDIES[kind].silent)


def _answered(address: str, kind: Kind, error: errors.HfHubHTTPError) -> SourceError:
    """Convert an HTTP error response to an error of this package."""
    from huggingface_hub import constants, errors

    response, status, said = error.response, error.response.status_code, _said(error)
    if status == 401 and "Authorization" in response.request.headers and "X-Error-Code" not in response.headers:
        # Public repositories are refused too. A valid token without access gets 403 or 404.
        remedy = "replace or remove it (HF_TOKEN, or `hf auth login` and `hf auth logout`)"
        return HubError(f"{address}: the Hub does not accept your token ({status}: {said})", remedy)
    if isinstance(error, errors.GatedRepoError):
        folder = "datasets/" if kind == "dataset" else ""
        page = shown(f"{constants.ENDPOINT}/{folder}{address.partition('@')[0]}")
        return HubError(f"{address} is gated ({status})", f"accept its terms at {page} and set HF_TOKEN")
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"{address}: the repository has no such commit, tag or branch ({status})", "correct it")
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(
            f"{address}: the Hub has no such repository, or it is private ({status})",
            "correct the name, or set HF_TOKEN to a token with access",
        )
    where = f"{address}{_file(error)}"
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return HubError(f"{where}: the repository has no such file ({status})", "report this to the authors")
    if status in _BUSY:
        after = error.response.headers.get("Retry-After", "")
        wait = float(after) if after.replace(".", "", 1).isdigit() else 0.0
        if status != 429:
            return HubSilentError(f"{where}: the Hub returned an error ({status})", REMEDIES[kind].silent, wait)
        remedy = f"wait {wait:.0f} s and run again" if wait else "run again later"
        return HubSilentError(f"{where}: too many requests to the Hub (429)", f"{remedy}, or set HF_TOKEN", wait)
    return HubError(f"{where}: the Hub refused the request ({status}: {said})", "see its page on the Hub")


def _is_silence(error: BaseException, kinds: frozenset[str] = _UNCONNECTED) -> bool:
    """Return whether no connection was made; requests for other repositories would fail too."""
    return not kinds.isdisjoint(kind.__name__ for kind in type(error).__mro__)


def _file(error: errors.HfHubHTTPError) -> str:
    """Return `: <file>` if a response is about a file, else ""."""
    found = _FILE.search(str(error.response.url))
    return f": {shown(unquote(found[1]))}" if found else ""


def _said(error: errors.HfHubHTTPError) -> str:
    """Return the first line of the Hub's own message, else of the client's."""
    line = ((error.server_message or "").strip() or message_of(error)).splitlines()[0]
    return shown(line)[:_LONGEST]


def _line(error: Exception) -> str:
    return shown(first_line(error))
