"""Addresses of stores, mirrors and sources, which are shown and recorded everywhere, and so may hold no password."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field

from storage.errors import SourceError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN: Final = "…"
# After `user:` a password may hold "/"; digits and "/" are a port and its path, and "::" is a chain of addresses.
_PASSWORD: Final = re.compile(r"(://)[^/:\[\s]*:(?!:|\d+/)\S*(@)")
_USER: Final = re.compile(r"(https?://)[^/\s]+(@)", re.IGNORECASE)  # a token; elsewhere a user or container
_SIGNATURE: Final = re.compile(
    r"(://\S*?[?&](?:[\w-]*(?:signature|token|secret|password|credential)|sig|key|api_?key)=)"
    rf"(?!{HIDDEN})[^&#'\"\s]+()",
    re.IGNORECASE,
)
_SECRETS: Final = (_PASSWORD, _USER, _SIGNATURE)


@contextmanager
def reachable(place: str | None) -> Iterator[None]:
    """Name the place that a client cannot reach: each client has errors of its own for that.

    Raises:
        SourceError: naming place and reason.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        raise SourceError(f"{place}: cannot be looked at ({reason}); correct the address or its access") from error


def without_password(address: str) -> str:
    """The address, if it can be shown: it holds no password, token or signature.

    An address reaches consoles, logs, pages of the Prefect UI, its database and reports. Clients have other places for
    credentials, which reach none of these.

    Raises:
        ValueError: it holds one; the message does not repeat it.
    """
    if not any(secret.search(address) for secret in _SECRETS):
        return address
    protocol = address.partition("://")[0].rpartition("::")[2]
    web = protocol.lower() in {"http", "https"}
    elsewhere = f"""FSSPEC_{protocol.upper()}='{{"client_kwargs": {{"headers": {{"Authorization": "…"}}}}}}'"""
    remedy = (
        f"give a token as {elsewhere} in the environment; what a signed address names, fetch first, and give its path"
        if web
        else f"give the password as FSSPEC_{protocol.upper()}_PASSWORD in the environment (fsspec's settings, also in "
        "~/.config/fsspec), or as the client's own, such as AWS_SECRET_ACCESS_KEY"
    )
    raise ValueError(
        f"an address {protocol}://… contains a password, token or signature, which logs and artifacts would "
        f"show; expected an address without; {remedy}"
    )


def shown(text: str) -> str:
    """A text with what looks like a password, token or signature of an address left out."""
    for secret in _SECRETS:
        while (cleaner := secret.sub(rf"\1{HIDDEN}\2", text)) != text:  # an address may hold several
            text = cleaner
    return text


def _without_nul(address: str) -> str:
    if "\0" in address:
        raise ValueError("an address contains NUL, which no file system takes; correct it")
    return address


def at_home(address: str) -> str:
    """The address with `~` spelt out, which a shell leaves alone in a setting and no shell sees in a file of them."""
    return str(Path(address).expanduser()) if address.startswith("~") else address


Address = Annotated[
    str, Field(min_length=1), AfterValidator(_without_nul), AfterValidator(without_password), AfterValidator(at_home)
]
"""A path or URL in a configuration; models that have one hide their input in errors, for it may hold a password."""
