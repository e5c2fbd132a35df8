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
_PASSWORD: Final = re.compile(r"://[^/]*:[^/]*@")


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
    """The address, if it can be shown.

    An address reaches consoles, logs, pages of the Prefect UI, its database and reports. Clients have other places for
    credentials, which reach none of these.

    Raises:
        ValueError: it holds a password; the message does not repeat it.
    """
    if _PASSWORD.search(address):
        protocol = address.partition("://")[0]
        raise ValueError(
            f"an address {protocol}://… holds a password, which would be shown and recorded with it; expected one "
            f"without; give the password as FSSPEC_{protocol.rpartition('::')[2].upper()}_PASSWORD in the environment "
            "(fsspec's settings, also in ~/.config/fsspec), or as the client's own, such as AWS_SECRET_ACCESS_KEY"
        )
    return address


def shown(text: str) -> str:
    """A text with what looks like a user and password of an address left out."""
    return _PASSWORD.sub(f"://{HIDDEN}@", text)


def _without_nul(address: str) -> str:
    if "\0" in address:
        raise ValueError("an address holds NUL, which no file system takes; correct it")
    return address


def at_home(address: str) -> str:
    """The address with `~` spelt out, which a shell leaves alone in a setting and no shell sees in a file of them."""
    return str(Path(address).expanduser()) if address.startswith("~") else address


Address = Annotated[
    str, Field(min_length=1), AfterValidator(_without_nul), AfterValidator(without_password), AfterValidator(at_home)
]
"""A path or URL in a configuration; models that have one hide their input in errors, for it may hold a password."""
