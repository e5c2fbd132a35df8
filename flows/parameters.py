"""Nested values: checks before they are recorded (numbers that a database can hold, no passwords); their paths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from bsl.storage.filesystem.secrets import without_password
from bsl.storage.record import LARGEST

_CHANGES = ("overrides", "config")  # parameters whose fields `--set` names without the parameter


def check_texts(values: Mapping[str, object]) -> None:
    """Refuse texts and names with a password, at any depth.

    Raises:
        ValueError: A text contains a password; the message names the field.
    """
    for path, value in _values(values):
        if isinstance(value, str):
            try:
                without_password(value)
            except ValueError as error:
                raise ValueError(f"{path}: {error}" if path else str(error)) from None


def check_numbers(values: Mapping[str, object]) -> None:
    """Refuse numbers that are too large or not finite, at any depth.

    Raises:
        ValueError: As described; the message names the field.
    """
    for path, value in _values(values):
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"{path}: a number beyond ±{LARGEST}, expected one within. Correct it")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{path}: {value}, expected a finite number. Correct it")


def leaves(section: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value of nested sections, with its path as in `--set`; `path` is the outer section and a dot."""
    for name, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _values(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """Yield every value and name in nested values, with its path as in `--set`."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield ".".join(path), name
            yield from _values(part, (*path, str(name)))
    elif isinstance(value, list | tuple | set | frozenset):
        for number, part in enumerate(value):
            yield from _values(part, (*path, str(number)))
    else:
        yield ".".join(path[1:] if len(path) > 1 and path[0] in _CHANGES else path), value
