"""URLs of stores, mirrors and sources: they are displayed and recorded, so they must not contain passwords."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.os_errors import message_of, not_written, translated
from bsl.storage.filesystem.secrets import PUBLIC_PATTERN, without_password

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


def reachable(address: str | None) -> AbstractContextManager[None]:
    """Turn a client's error about a URL into a `SourceError`, because each client has its own error classes.

    Raises:
        SourceError: names the URL and the reason.
    """

    def fault(error: Exception) -> SourceError | None:
        found = SourceError(f"{address}: cannot be read ({message_of(error)}). Correct the address or its permissions.")
        return None if not_written(error) else found  # the disk of a copy is full

    return translated(fault)


def _without_nul(address: str) -> str:
    if "\0" in address:
        raise ValueError("an address contains NUL, which no file system accepts. Correct it.")
    return address


def absolute(address: str) -> str:
    """Return a local path as an absolute path, because workers have other working directories; URLs unchanged."""
    return address if "://" in address else str(Path(at_home(address)).absolute())


def at_home(address: str) -> str:
    """Return the address with `~` expanded, unless its user is unknown; shells do not expand it in settings files."""
    return str(Path(os.path.expanduser(address))) if address.startswith("~") else address  # noqa: PTH111 - Path's raises


def is_missing(address: str) -> bool:
    """Return whether an address is a path on this machine that does not exist; URLs are not asked."""
    return "://" not in address and not Path(at_home(address)).exists()


class _InForm:
    """Annotation that adds the pattern of texts without passwords to a JSON schema; `partial` copies annotations."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "pattern": PUBLIC_PATTERN}


Public = Annotated[str, AfterValidator(without_password), _InForm()]
"""A name that may be an address, such as that of a set; it is shown and recorded, so without passwords."""
Named = Annotated[str, Field(min_length=1), AfterValidator(without_password), _InForm()]
"""As `Public`, and not empty."""
Address = Annotated[Named, AfterValidator(_without_nul), AfterValidator(at_home)]
"""A path or URL in a configuration; models with one hide their input in errors, as it may contain a password."""
