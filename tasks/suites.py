"""What `--suite` means: which sets, in the order of the papers' tables."""

import difflib
from collections.abc import Iterable
from typing import Final

from storage.errors import SourceError
from tasks.resolve import check_name

_STS: Final = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
_TRACKS: Final = ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr", "es-en", "fr-en", "it-en", "nl-en", "ko-ko")

SUITES: Final[dict[str, tuple[str, ...]]] = {
    "sts": tuple(f"{name}/test" for name in _STS),
    "sts-tok": tuple(f"{name}-tok/test" for name in _STS),
    "sts17": tuple(f"sts17-{track}/test" for track in _TRACKS),
}
ALL: Final = "all"


def names_of(suite: Iterable[str]) -> tuple[str, ...]:
    """The sets behind suites and single names, each once.

    Args:
        suite: keys of `SUITES`, `all` for every one of them, or sets as `<name>/<split>`.

    Raises:
        SourceError: a word is neither.
    """
    names: dict[str, None] = {}
    for word in suite:
        for part in SUITES if word == ALL else (word,):
            names |= dict.fromkeys(SUITES.get(part) or (_checked(part),))
    return tuple(names)


def _checked(name: str) -> str:
    if "/" not in name:
        nearest = difflib.get_close_matches(name, (*SUITES, ALL), n=1)
        hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
        raise SourceError(
            f"{name!r} is no suite{hint}; expected {', '.join(SUITES)}, {ALL}, or a set as <name>/<split>"
        )
    check_name(name)
    return name
