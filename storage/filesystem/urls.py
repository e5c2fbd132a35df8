"""URLs of stores, mirrors and sources: they are displayed and recorded, so they must not contain passwords."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field

from storage.errors import SourceError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN: Final = "…"
# After `user:` a password may contain "/"; digits and "/" are a port and a path, and "::" chains URLs.
_PASSWORD: Final = re.compile(r"(://)[^/:\[\s]*:(?!:|\d+/)\S*(@)")
_USER: Final = re.compile(r"(https?://)[^/\s]+(@)", re.IGNORECASE)  # a token; in other schemes a user or a container
_SIGNATURE: Final = re.compile(
    r"(://\S*?[?&](?:[\w-]*(?:signature|token|secret|password|credential)|sig|key|api_?key)=)"
    rf"(?!{HIDDEN})[^&#'\"\s]+()",
    re.IGNORECASE,
)
_SECRETS: Final = (_PASSWORD, _USER, _SIGNATURE)


@contextmanager
def reachable(address: str | None) -> Iterator[None]:
    """Turn a client's error about a URL into a `SourceError`, because each client has its own error classes.

    Raises:
        SourceError: names the URL and the reason.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        raise SourceError(f"{address}: cannot be read ({reason}). Correct the address or its permissions.") from error


def without_password(address: str) -> str:
    """Return the URL unchanged if it contains no password, token or signature.

    URLs reach consoles, logs, the Prefect UI, its database and reports. Clients also accept credentials from the
    environment or their own files.

    Raises:
        ValueError: it contains one; the message does not repeat it.
    """
    if not any(secret.search(address) for secret in _SECRETS):
        return address
    protocol = address.partition("://")[0].rpartition("::")[2]
    web = protocol.lower() in {"http", "https"}
    setting = f"""FSSPEC_{protocol.upper()}='{{"client_kwargs": {{"headers": {{"Authorization": "…"}}}}}}'"""
    remedy = (
        f"Set a token as {setting} in the environment. For a signed address, download the file and use its path."
        if web
        else f"Set the password as FSSPEC_{protocol.upper()}_PASSWORD in the environment or in ~/.config/fsspec, or as "
        "the client's own setting, such as AWS_SECRET_ACCESS_KEY."
    )
    raise ValueError(
        f"an address {protocol}://… contains a password, token or signature, which would appear in logs and artifacts; "
        f"expected an address without one. {remedy}"
    )


def shown(text: str) -> str:
    """Replace passwords, tokens and signatures of URLs in a text by `HIDDEN`."""
    for secret in _SECRETS:
        while (cleaner := secret.sub(rf"\1{HIDDEN}\2", text)) != text:  # a URL may contain several
            text = cleaner
    return text


def _without_nul(address: str) -> str:
    if "\0" in address:
        raise ValueError("an address contains NUL, which no file system accepts. Correct it.")
    return address


def at_home(address: str) -> str:
    """Return the address with `~` expanded, unless its user is unknown; shells do not expand it in settings files."""
    return str(Path(os.path.expanduser(address))) if address.startswith("~") else address  # noqa: PTH111 - Path's raises


Address = Annotated[
    str, Field(min_length=1), AfterValidator(_without_nul), AfterValidator(without_password), AfterValidator(at_home)
]
"""A path or URL in a configuration; models with one hide their input in errors, as it may contain a password."""
