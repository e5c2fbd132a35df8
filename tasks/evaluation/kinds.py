"""The kinds of evaluation; what `--suite` means by them, and which sets can be had here."""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from storage.errors import HubError, SourceError
from tasks.corpus.evaluation_sets import EvaluationSet, in_full, rows_of
from tasks.evaluation.afs import AfsKind
from tasks.evaluation.clustering import ClusteringKind
from tasks.evaluation.finetuning.afs import CrossEncoderAfsKind, SupervisedAfsKind
from tasks.evaluation.finetuning.sts import CrossEncoderStsKind, SupervisedStsKind
from tasks.evaluation.kind import FrozenKind, Kind, TunedKind
from tasks.evaluation.own_text import OwnTextKind
from tasks.evaluation.sts import StsKind
from tasks.evaluation.transfer import TransferKind
from tasks.evaluation.useb import UsebKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tasks.rendering.paper_tables import PaperTable
    from tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

AnyKind = FrozenKind[Any] | TunedKind[Any]
KINDS: Final[tuple[AnyKind, ...]] = (
    StsKind(),
    OwnTextKind(),
    TransferKind(),
    AfsKind(),
    UsebKind(),
    ClusteringKind(),
    SupervisedStsKind(),
    SupervisedAfsKind(),
    CrossEncoderStsKind(),
    CrossEncoderAfsKind(),
)
"""In the order in which figures are reported."""
ALL: Final = "all"

K = TypeVar("K", bound=Kind[Any])


class UnknownSuiteError(ValueError):
    """No suite or set has that name."""


@dataclass(frozen=True)
class FoundSets:
    """The sets that were asked for.

    Attributes:
        sets: name → set, of those that can be had and read, in the order in which they were asked for.
        missing: name → why it cannot, and what to do.
    """

    sets: Mapping[str, EvaluationSet]
    missing: Mapping[str, str]

    def embedded(self) -> tuple[EvaluationSet, ...]:
        """Sets on which vectors are scored as they are."""
        return tuple(found for name, found in self.sets.items() if not kind_of(name).fine_tunes)

    def frozen(self) -> list[tuple[FrozenKind[Any], tuple[EvaluationSet, ...]]]:
        """Kinds of which there are sets, and these; those that fine-tune are left out."""
        return self._by_kind([kind for kind in KINDS if isinstance(kind, FrozenKind)])

    def tuned(self) -> list[tuple[TunedKind[Any], tuple[EvaluationSet, ...]]]:
        """Kinds that fine-tune of which there are sets, and these."""
        return self._by_kind([kind for kind in KINDS if isinstance(kind, TunedKind)])

    def _by_kind(self, kinds: list[K]) -> list[tuple[K, tuple[EvaluationSet, ...]]]:
        own = {kind: tuple(found for name, found in self.sets.items() if kind_of(name) is kind) for kind in kinds}
        return [(kind, sets) for kind, sets in own.items() if sets]


def suites() -> dict[str, tuple[str, ...]]:
    """Suite → the names of its sets."""
    return {suite: names for kind in KINDS for suite, names in kind.suites.items()}


def tuned_names() -> tuple[str, ...]:
    """Protocols that fine-tune the encoder; they are part of no suite."""
    return tuple(name for kind in KINDS if kind.fine_tunes for name in kind.names)


def tables() -> tuple[PaperTable, ...]:
    """The papers' tables, of all kinds."""
    return tuple(table for kind in KINDS for table in kind.tables)


def names_of(suite: Iterable[str]) -> tuple[str, ...]:
    """The sets behind suites and single names, each once.

    Args:
        suite: keys of `suites()`, `all` for every one of them, sets such as `stsb/dev`, `sts12` (its test split) or
            `trec`, or names of `tuned_names()`.

    Raises:
        UnknownSuiteError: a word is neither.
    """
    known = suites()
    names: dict[str, None] = {}
    for word in suite:
        for part in known if word == ALL else (word,):
            if part not in known:
                part = in_full(part)
                kind_of(part)
            names |= dict.fromkeys(known.get(part, (part,)))
    return tuple(names)


def available(site: RunContext, names: Iterable[str]) -> FoundSets:
    """The sets that can be had and read, and why each of the others cannot.

    Args:
        site: its mirror is looked at first.
        names: as `names_of` gives them.

    Raises:
        UnknownSuiteError: a name is of no kind of set.
        HubError: the Hub should have one of them and does not give it.
        SourceError: none of the sets can be had.
    """
    sets: dict[str, EvaluationSet] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            sets[name] = find_set(site, name)
        except HubError:  # others can have it: without it the result would be another
            raise
        except SourceError as error:
            logger.warning("%s is missing: %s", name, error)
            missing[name] = str(error)
    if not sets:
        raise SourceError("none of the sets can be had: " + "; ".join(missing.values()))
    return FoundSets(sets, missing)


def find_set(site: RunContext, name: str) -> EvaluationSet:
    """The set of that name, read here so that one that cannot be read does not end a run that scores the others.

    Raises:
        UnknownSuiteError: a name is of no kind of set.
        SourceError: nobody has it, or it cannot be read.
    """
    found: EvaluationSet = kind_of(name).find(site, name)
    rows_of(found)
    return found


def available_frozen(site: RunContext, suite: Iterable[str]) -> FoundSets:
    """As `available`, for what a training run is reported on: its encoder as it is, not tuned further.

    Raises:
        UnknownSuiteError: as `frozen_names`.
        HubError, SourceError: as `available`.
    """
    return available(site, frozen_names(suite))


def frozen_names(suite: Iterable[str]) -> tuple[str, ...]:
    """As `names_of`, without what fine-tunes.

    Raises:
        UnknownSuiteError: a word is no suite and no set, or names a protocol that fine-tunes.
    """
    names = names_of(suite)
    if tuned := [name for name in names if kind_of(name).fine_tunes]:
        raise UnknownSuiteError(
            f"evaluation.sets contains {', '.join(tuned)}, which fine-tune the encoder for hours; a run scores it "
            f"frozen. Ask for them afterwards: bsl evaluate report/<key> --suite {' '.join(tuned)}"
        )
    return names


def is_drawn(name: str) -> bool:
    """Return whether sweeps compare systems on the set of that name.

    Raises:
        UnknownSuiteError: as `kind_of`.
    """
    kind = kind_of(name)
    return isinstance(kind, FrozenKind) and kind.is_drawn


def frozen_kind(name: str) -> FrozenKind[Any]:
    """Return the kind of a set on which vectors are scored as they are.

    Raises:
        UnknownSuiteError: there is none, or it fine-tunes.
    """
    kind = kind_of(name)
    if not isinstance(kind, FrozenKind):
        raise UnknownSuiteError(
            f"{name} fine-tunes the encoder; expected a set on which vectors are scored as they are"
        )
    return kind


def kind_of(name: str) -> AnyKind:
    """The kind of the set of that name.

    Raises:
        UnknownSuiteError: there is none.
    """
    for kind in KINDS:
        if kind.knows(name):
            return kind
    nearest = difflib.get_close_matches(name, (*suites(), ALL, *(other for kind in KINDS for other in kind.names)))
    hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    raise UnknownSuiteError(
        f"{name!r} is no suite and no set{hint}; suites are {', '.join(suites())} and {ALL}; "
        f"protocols that fine-tune {', '.join(tuned_names())}"
    )
