"""What `--suite` means: which sets, in the order of the papers' tables, and which of them can be had here."""

import difflib
import logging
from collections.abc import Callable, Iterable
from typing import Final

from storage.errors import SourceError
from storage.transfer import TRANSFER_SETS
from tasks.evaluation.afs import AFS, AFS_PROTOCOLS, find_afs_folds, find_afs_set
from tasks.evaluation.sets import EvaluationSet, ScoredSet, is_scored_set, resolve_scored_set
from tasks.evaluation.supervised import NAME as SUPERVISED_PAIRS
from tasks.evaluation.supervised import find_supervised_pairs
from tasks.evaluation.transfer import find_transfer_set, is_transfer_set
from tasks.site import Site

logger = logging.getLogger(__name__)

_STS: Final = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
_TRACKS: Final = ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr", "es-en", "fr-en", "it-en", "nl-en", "ko-ko")

SUITES: Final[dict[str, tuple[str, ...]]] = {
    "sts": tuple(f"{name}/test" for name in _STS),
    "sts-tok": tuple(f"{name}-tok/test" for name in _STS),
    "sts17": tuple(f"sts17-{track}/test" for track in _TRACKS),
    "senteval": tuple(TRANSFER_SETS),
    "afs": (AFS,),
}
ALL: Final = "all"
TUNED: Final = (SUPERVISED_PAIRS, *AFS_PROTOCOLS)
"""Protocols that fine-tune the encoder, for hours on a CPU; asked for by name alone."""

# Whether a name is of a kind of set, and how that kind is found.
_KINDS: Final[tuple[tuple[Callable[[str], bool], Callable[[Site, str], EvaluationSet]], ...]] = (
    (is_scored_set, resolve_scored_set),
    (is_transfer_set, find_transfer_set),
    (AFS.__eq__, find_afs_set),
    (SUPERVISED_PAIRS.__eq__, find_supervised_pairs),
    (AFS_PROTOCOLS.__contains__, find_afs_folds),
)


class UnknownSuiteError(ValueError):
    """No suite or set has that name."""


def names_of(suite: Iterable[str]) -> tuple[str, ...]:
    """The sets behind suites and single names, each once.

    Args:
        suite: keys of `SUITES`, `all` for every one of them, sets such as `stsb/dev` or `trec`, or names of `TUNED`.

    Raises:
        UnknownSuiteError: a word is neither.
    """
    names: dict[str, None] = {}
    for word in suite:
        for part in SUITES if word == ALL else (word,):
            names |= dict.fromkeys(SUITES.get(part) or (_checked(part),))
    return tuple(names)


def available(site: Site, names: Iterable[str]) -> tuple[tuple[EvaluationSet, ...], dict[str, str]]:
    """The sets that can be had and read, and why each of the others cannot.

    Args:
        site: its mirror is looked at first.
        names: as `names_of` gives them.

    Raises:
        UnknownSuiteError: a name is of no kind of set.
        SourceError: none of the sets can be had.
    """
    found: list[EvaluationSet] = []
    missing: dict[str, str] = {}
    for name in names:
        resolve = next(resolve for knows, resolve in _KINDS if knows(_checked(name)))
        try:
            one = resolve(site, name)
            one.sentences()  # a set that cannot be read must not end a run that scores the others
        except SourceError as error:
            logger.warning("%s is missing: %s", name, error)
            missing[name] = str(error)
        else:
            found.append(one)
    if not found:
        raise SourceError("none of the sets can be had: " + "; ".join(missing.values()))
    return tuple(found), missing


def available_frozen(site: Site, suite: Iterable[str]) -> tuple[tuple[EvaluationSet, ...], dict[str, str]]:
    """As `available`, for what a training run is reported on: its encoder as it is, not tuned further.

    Raises:
        UnknownSuiteError: a word is no suite and no set, or names a protocol that fine-tunes.
        SourceError: none of the sets can be had.
    """
    names = names_of(suite)
    if tuned := [name for name in names if name in TUNED]:
        raise UnknownSuiteError(
            f"evaluation.sets holds {', '.join(tuned)}, which fine-tune the encoder for hours; a run scores it as it "
            f"is. Ask for them afterwards: bsl evaluate report/<key> --suite {' '.join(tuned)}"
        )
    return available(site, names)


def scored_of(sets: Iterable[EvaluationSet]) -> tuple[ScoredSet, ...]:
    """Those that are semantic textual similarity sets."""
    return tuple(one for one in sets if isinstance(one, ScoredSet))


def _checked(name: str) -> str:
    if not any(knows(name) for knows, _ in _KINDS):
        nearest = difflib.get_close_matches(
            name, (*SUITES, ALL, *TUNED, *(each for names in SUITES.values() for each in names))
        )
        hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
        raise UnknownSuiteError(
            f"{name!r} is no suite and no set{hint}; suites are {', '.join(SUITES)} and {ALL}; "
            f"protocols that fine-tune {', '.join(TUNED)}"
        )
    return name
