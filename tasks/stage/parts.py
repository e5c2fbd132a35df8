"""A run cut into parts for machines of different kinds: what lies before must be there, what lies after is only named.

A run is walked whole in each of its parts, as a plan walks it, so that there is one way through the house and each
stage's artifact is named by what it is made from. Cuts lie where the way says `passed`; a stage belongs to the cut
after it.

What a machine may decide (a translator's precision is int8 on a CPU) is in keys. A part is therefore told what the
parts before it made, instead of reckoning the names itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeVar, get_args

from storage.errors import ArtifactMissingError
from storage.refs import ArtifactRef
from tasks.stage.watch import Step, watchers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tasks.site import Site

R = TypeVar("R", bound=ArtifactRef)

Cut = Literal["corpus", "views", "pairs", "checkpoint", "embeddings"]
CUTS: Final[tuple[Cut, ...]] = get_args(Cut)


@dataclass
class Part:
    """From one cut to another.

    Attributes:
        start: the cut that it begins after; the beginning if None.
        until: the cut that it ends at; the end if None.
        given: what the parts before made, in the order of the way; reckoned here if empty.
        steps: all stages up to `until`, in the order of the way.
        last: those that lie between `until` and the cut before it.
    """

    start: Cut | None = None
    until: Cut | None = None
    given: tuple[ArtifactRef, ...] = ()
    steps: list[Step] = field(default_factory=list)
    last: list[Step] = field(default_factory=list)
    _position: int = 0

    def __post_init__(self) -> None:
        """Refuse a part without a stage.

        Raises:
            ValueError: it ends before it begins.
        """
        if self.start and self.until and CUTS.index(self.until) <= CUTS.index(self.start):
            raise ValueError(
                f"from {self.start} until {self.until}: nothing lies between; expected a later one of {', '.join(CUTS)}"
            )

    def passed(self, cut: Cut) -> None:
        """Leave a cut behind."""
        assert cut == CUTS[self._position]
        self._position += 1

    @property
    def makes(self) -> bool:
        """Whether a stage that is called now belongs to the part."""
        return not self._before and not self._after

    def note(self, step: Step) -> None:
        """Remember a stage of the part."""
        self.steps.append(step)
        if self.until is not None and CUTS[self._position] == self.until:
            self.last.append(step)

    def outside(self, site: Site, stage: str, ref: R) -> R:
        """The reference of a stage that another part makes.

        Raises:
            ArtifactMissingError: it lies before this part, and is not there.
        """
        if self._after:
            return ref
        wanted = ref
        if self.given:
            if len(self.steps) >= len(self.given) or self.given[len(self.steps)].kind != ref.kind:
                made = ", ".join(map(str, self.given))
                raise ArtifactMissingError(
                    f"stage {stage}: the parts before made {made}, none of which is its {ref.kind}; give all parts "
                    "the same recipe, settings and version of this package"
                )
            wanted = ref.model_copy(update={"key": self.given[len(self.steps)].key})
        step = Step(stage, wanted)
        self.note(step)
        if fault := site.open_store().defect(wanted):
            raise ArtifactMissingError(
                f"{fault}; this part begins after {self.start} and makes nothing that lies before: run "
                f"`bsl run RECIPE --until {self.start}` with the same settings, store and kind of device"
            )
        for watcher in watchers():
            watcher.begins(step)
            watcher.ends(step)
        return wanted

    @property
    def _before(self) -> bool:
        return self.start is not None and self._position <= CUTS.index(self.start)

    @property
    def _after(self) -> bool:
        return self.until is not None and self._position > CUTS.index(self.until)


_part: ContextVar[Part | None] = ContextVar("part", default=None)


@contextmanager
def working_on(part: Part) -> Iterator[Part]:
    """Walk a run's way inside the block, and make what belongs to the part."""
    token = _part.set(part)
    try:
        yield part
    finally:
        _part.reset(token)


def current_part() -> Part | None:
    """The part that is walked now; None where a run is whole."""
    return _part.get()


def passed(cut: Cut) -> None:
    """Mark that a run has come to a cut: what it is named after is there, or at least named."""
    part = _part.get()
    if part is not None:
        part.passed(cut)
