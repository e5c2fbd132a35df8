"""Table of all kinds of evaluation; resolve `--suite` to sets, and find the available ones."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig, ScoringConfig
from bsl.storage.artifacts.refs import EmbeddingsRef, ScoresRef
from bsl.storage.assets.embedded import EMBEDDED, TEXTS, embedded_folder, embedded_names
from bsl.storage.datasets.registry import ALL, pairs_of
from bsl.storage.errors import HubError, SourceError
from bsl.storage.filesystem.secrets import without_password
from bsl.storage.filesystem.spelling import did_you_mean
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, ScoredSet, in_full, rows_of
from bsl.tasks.embedding.vectors import Vectors, open_vectors
from bsl.tasks.evaluation.afs import AFS, AfsKind
from bsl.tasks.evaluation.finetuning.afs import SupervisedAfsKind
from bsl.tasks.evaluation.finetuning.finetune import CROSS
from bsl.tasks.evaluation.finetuning.sts import SupervisedStsKind
from bsl.tasks.evaluation.kind import DRAWS_VERSION, FrozenKind, TunedKind, publish_scores
from bsl.tasks.evaluation.own_labels import OwnLabelsKind
from bsl.tasks.evaluation.own_text import OwnTextKind
from bsl.tasks.evaluation.sts import StsKind
from bsl.tasks.evaluation.transfer import TransferKind
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.device import device_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bsl.models.evaluation.sweep import SetDraws
    from bsl.tasks.rendering.paper_tables import PaperTable
    from bsl.tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

AnyKind = FrozenKind[Any] | TunedKind[Any]
KINDS: Final[tuple[AnyKind, ...]] = (
    StsKind(),
    OwnTextKind(),
    OwnLabelsKind(),
    TransferKind(),
    AfsKind(),
    SupervisedStsKind("stsb-supervised", lambda settings: settings.stsb),
    SupervisedAfsKind(AFS, lambda settings: settings.afs),
    SupervisedStsKind(f"stsb-{CROSS}", lambda settings: settings.stsb_cross),
    SupervisedAfsKind(f"{AFS}-{CROSS}", lambda settings: settings.afs_cross),
)
"""All kinds, in the order of reports."""


@stage(ref=ScoresRef, version=5 + DRAWS_VERSION, uses_torch=True)
def score(
    context: StageContext,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    kind: str,
    sets: tuple[EvaluationSet, ...],
    bootstrap: BootstrapConfig,
    probe: ProbeConfig | None,
) -> None:
    """Score a system's vectors on the sets of one kind, named by its title.

    `checkpoint` is the identity of the system's encoder; `probe` has the settings of classifiers, None for a kind that
    trains none.
    """
    scoring = ScoringConfig(bootstrap=bootstrap, probe=probe or ProbeConfig())
    (found,) = (one for one in KINDS if isinstance(one, FrozenKind) and one.title == kind)
    figures = found.figures(sets, open_vectors(context.store, embeddings), scoring, device_of(context.site))
    publish_scores(context, figures, model, checkpoint, (probe or bootstrap).seed, f"{kind}: {model}")


class UnknownSuiteError(ValueError):
    """No suite or set has that name."""


@dataclass(frozen=True)
class FoundSets:
    """The requested sets.

    Attributes:
        sets: Name → set, for the available ones, in the requested order.
        missing: Name → the reason and the remedy, for the others.
    """

    sets: Mapping[str, EvaluationSet]
    missing: Mapping[str, str]

    @property
    def scored(self) -> tuple[ScoredSet, ...]:
        """The sets of pairs with gold scores."""
        return tuple(found for found in self.sets.values() if isinstance(found, ScoredSet))

    @property
    def drawn(self) -> dict[str, EvaluationSet]:
        """Name without `embedded:` → set, for the sets on which systems are compared."""
        return {name.removeprefix(EMBEDDED): found for name, found in self.sets.items() if kind_of(name).is_drawn}

    def undrawn(self) -> FoundSets:
        """Return the sets on which systems are scored without draws."""
        return FoundSets({name: found for name, found in self.sets.items() if not kind_of(name).is_drawn}, {})

    def embedded(self) -> tuple[EvaluationSet, ...]:
        """Return the sets on which frozen vectors are scored."""
        return tuple(found for name, found in self.sets.items() if isinstance(kind_of(name), FrozenKind))

    def frozen(self) -> list[tuple[FrozenKind[Any], tuple[EvaluationSet, ...]]]:
        """Return each frozen kind that has sets, with its sets."""
        return [(kind, sets) for kind in KINDS if isinstance(kind, FrozenKind) and (sets := self._of(kind))]

    def tuned(self) -> list[tuple[TunedKind[Any], tuple[EvaluationSet, ...]]]:
        """Return each fine-tuning kind that has sets, with its sets."""
        return [(kind, sets) for kind in KINDS if isinstance(kind, TunedKind) and (sets := self._of(kind))]

    def _of(self, kind: AnyKind) -> tuple[EvaluationSet, ...]:
        return tuple(found for name, found in self.sets.items() if kind_of(name) is kind)


def suites() -> dict[str, tuple[str, ...]]:
    """Return suite → names of its sets, for all kinds."""
    return {suite: names for kind in KINDS for suite, names in kind.suites.items()}


def tuned_names() -> tuple[str, ...]:
    """Return the names of the fine-tuning protocols, which are in no suite."""
    return tuple(name for kind in KINDS if isinstance(kind, TunedKind) for name in kind.names)


def tables() -> tuple[PaperTable, ...]:
    """Return the layouts of the papers' tables, of all kinds."""
    return tuple(table for kind in KINDS for table in kind.tables)


def names_of(suite: Iterable[str]) -> tuple[str, ...]:
    """Resolve suites and names of sets to set names, each once.

    Args:
        suite: Keys of `suites()`, `all` for all suites, sets such as `stsb/dev`, `sts12` (its test split) or `trec`, or
            names of `tuned_names()`.

    Raises:
        ValueError: An address contains a password.
        UnknownSuiteError: A name is neither a suite nor a set.
    """
    known = suites()
    names: dict[str, None] = {}
    for word in suite:
        for part in known if word == ALL else (without_password(word),):
            names |= dict.fromkeys(known.get(part) or named_sets((part,)))
    return tuple(names)


def named_sets(suite: Iterable[str]) -> tuple[str, ...]:
    """Return the complete names of the sets that are named themselves, not by a suite.

    Raises:
        UnknownSuiteError: A name is neither a suite nor a set.
    """
    known = suites()
    names = tuple(in_full(word) for word in suite if word not in known and word != ALL)
    for name in names:
        kind_of(name)
    return names


def available(site: RunContext, names: Iterable[str], *, skip_failed_downloads: bool = False) -> FoundSets:
    """Find and read sets, first in the mirror; return the available ones, and the reason for each missing one.

    The copy in the package of a set that was found, or the reverse, is skipped: it would count twice in means. A set
    whose copy was found is not missing.

    A failed download is a reason only if `skip_failed_downloads`; otherwise it raises an error, because a temporary
    failure must not change the result of a run.

    Raises:
        UnknownSuiteError: A name belongs to no kind of set.
        HubError: A download from the Hub failed.
        SourceError: None of the sets is available.
    """
    sets: dict[str, EvaluationSet] = {}
    missing: dict[str, str] = {}
    for name in names:
        if copies_of((name,)) <= copies_of(sets):
            continue
        try:
            sets[name] = find_set(site, name)
        except SourceError as error:
            if isinstance(error, HubError) and not skip_failed_downloads:
                raise
            missing[name] = f"{error}{_packaged(name, str(error))}"
    missing = {name: reason for name, reason in missing.items() if not copies_of((name,)) <= copies_of(sets)}
    if not sets:
        first, *others = missing.values() or ("no set is named. Name one, such as stsb/test.",)
        more = f" Also missing: {len(others)} more." if others else ""
        raise SourceError(f"none of the sets is available: {first}{more}")
    for name, reason in missing.items():
        logger.warning("%s is not available: %s", name, reason)
    return FoundSets(sets, missing)


def _packaged(name: str, reason: str) -> str:
    """Return a sentence if the package contains a missing set, and its reason does not say so."""
    dataset, _, split = name.rpartition("/")
    contained = dataset in embedded_names(kinds=TEXTS) and (embedded_folder(dataset) / f"{split}.parquet").is_file()
    return f" The package contains this set: {EMBEDDED}{name}." if contained and EMBEDDED not in reason else ""


def find_set(site: RunContext, name: str) -> EvaluationSet:
    """Find and read a set; reading it here lets callers skip an unreadable set and score the others.

    Raises:
        UnknownSuiteError: The name belongs to no kind of set.
        SourceError: The set is not available or cannot be read.
    """
    found: EvaluationSet = kind_of(name).find(site, name)
    rows_of(found)
    return found


def draws_of_sets(
    sets: Iterable[tuple[str, EvaluationSet, int]], systems: Sequence[Sequence[Vectors]], config: BootstrapConfig
) -> list[SetDraws]:
    """Return bootstrap scores of several systems on sets whose kinds draw them, as of `Kind.draws`.

    Each set has a name, and an offset of its seed from the configured one; averaged sets need different offsets.
    """
    return [
        drawn
        for name, evaluation_set, offset in sets
        for drawn in kind_of(name).draws(
            evaluation_set, systems, config.model_copy(update={"seed": config.seed + offset})
        )
    ]


def with_offsets(sets: Mapping[str, EvaluationSet]) -> list[tuple[str, EvaluationSet, int]]:
    """Return name, set and offset for `draws_of_sets`; raw and tokenised text of the same pairs have the same one."""
    offsets: dict[tuple[str, str], int] = {}
    found = []
    for name, evaluation_set in sets.items():
        family = _family(evaluation_set.dataset, getattr(evaluation_set, "split", ""))
        found.append((name, evaluation_set, offsets.setdefault(family, len(offsets))))
    return found


def have_mean(sets: Iterable[SetDraws]) -> bool:
    """Return whether there are several sets; raw and tokenised text of the same pairs are one."""
    return len({_family(found.dataset, found.split) for found in sets}) > 1


def _family(dataset: str, split: str) -> tuple[str, str]:
    return pairs_of(dataset), split


def frozen_names(suite: Iterable[str]) -> tuple[str, ...]:
    """Resolve suites and names of sets as `names_of`; refuse fine-tuning protocols, which training runs do not score.

    Raises:
        UnknownSuiteError: A name is neither a suite nor a set, or is a fine-tuning protocol.
    """
    names = names_of(suite)
    if tuned := [name for name in names if isinstance(kind_of(name), TunedKind)]:
        raise UnknownSuiteError(
            f"evaluation.sets contains {', '.join(tuned)}: fine-tuning takes hours, and a run scores frozen vectors "
            f"only. Remove them, and score them after the run: bsl evaluate report/<key> --suite "
            f"{' '.join(tuned)}"
        )
    return names


def shared_names(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the names that all lists contain, perhaps as a copy, in the order and spelling of the first."""
    shared = set.intersection(*map(copies_of, lists))
    return [name for name in lists[0] if copies_of((name,)) <= shared]


def copies_of(names: Iterable[str]) -> set[str]:
    """Return the names of sets without `embedded:`: the package's copy of a set has the same rows."""
    return {name.removeprefix(EMBEDDED) for name in names}


def undrawn(lists: Iterable[Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return dataset → its main metrics, for the named sets without draws."""
    kinds = {name.removeprefix(EMBEDDED): kind_of(name) for names in lists for name in names}
    return {name: kind.headline for name, kind in kinds.items() if not kind.is_drawn}


def kind_of(name: str) -> AnyKind:
    """Return the kind of a set, by the set's name.

    Raises:
        UnknownSuiteError: No set has that name.
    """
    for kind in KINDS:
        if kind.knows(name):
            return kind
    hint = did_you_mean(name, (*suites(), ALL, *(other for kind in KINDS for other in kind.names)))
    raise UnknownSuiteError(
        f"unknown suite or set {name!r}.{hint} Suites: {', '.join(suites())}, {ALL}; fine-tuning protocols: "
        f"{', '.join(tuned_names())}."
    )
