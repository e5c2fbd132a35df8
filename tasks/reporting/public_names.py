"""Names of the user's evaluation sets without their folders: a card is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bsl.storage.sources.label_names import COLUMNS, SET_PREFIX
from bsl.storage.sources.own_text import SET_PREFIX as TEXT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PREFIXES: Final = (SET_PREFIX, TEXT_PREFIX)


class _OwnSet(NamedTuple):
    """The parts of the name of a user's set: prefix, folders and file, and `#` with columns."""

    prefix: str
    path: tuple[str, ...]
    columns: str

    def name(self, parts: int) -> str:
        """Return the name with only the last parts of its path."""
        return f"{self.prefix}{'/'.join(self.path[-parts:])}{self.columns}"


def public_names(names: Iterable[str]) -> dict[str, str]:
    """Return name → public name: of `labels:` and `own:` sets only the last part of the path.

    Sets that would have the same name keep as many last folders as distinguish them. Other names stay as they are.
    """
    own = {name: _parsed(name) for name in names if name.startswith(_PREFIXES)}
    found = {}
    for name, parsed in own.items():
        others = [other for other in own.values() if other != parsed]
        lengths = range(1, len(parsed.path) + 1)
        found[name] = next(
            (short for n in lengths if (short := parsed.name(n)) not in {other.name(n) for other in others}),
            parsed.name(len(parsed.path)),
        )
    return found


def with_public_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the public names of `public_names`; longer names first, since one may begin with another."""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text


def _parsed(name: str) -> _OwnSet:
    prefix = next(prefix for prefix in _PREFIXES if name.startswith(prefix))
    rest = name.removeprefix(prefix)
    file = COLUMNS.fullmatch(rest) if prefix == SET_PREFIX else None
    path = file[1] if file else rest
    return _OwnSet(prefix, tuple((path.rstrip("/") or path).split("/")), rest[len(path) :])
