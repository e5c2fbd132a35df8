"""How long a run still takes: what was measured in it, and nothing where that does not say.

The stage at work tells what is left of it by its own rate. A stage ahead takes as long as those of its name took in
this run, so a sweep or a reproduction knows after its first point; for a run that does each thing once as a whole no
figure is given.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from models.progress import spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.progress import Progress
    from tasks.stage.progress import Step


class Remaining:
    """Estimates how long a run still takes, from its stages as they begin and end.

    Args:
        plan: all stages, each once; None where they are not known.
    """

    def __init__(self, plan: Sequence[Step] | None) -> None:
        self._ahead = None if plan is None else Counter(step.stage for step in plan)
        self._taken: dict[str, list[float]] = defaultdict(list)
        self._at_work: dict[str, float] = {}  # when it began
        self._left: tuple[float, float] | None = None  # of the stage at work, and when that was said

    def begins(self, step: Step) -> bool:
        """A stage is called for the first time; whether the plan has it, by its name, or there is no plan."""
        if self._ahead is None:
            return True
        self._ahead[step.stage] -= 1
        return self._ahead[step.stage] >= 0

    def makes(self, step: Step, now: float) -> None:
        """It computes, from `now` on."""
        self._at_work[step.ref.path], self._left = now, None

    def advances(self, progress: Progress, now: float) -> None:
        """The stage at work has come so far."""
        self._left = None if progress.left is None else (progress.left, now)

    def ends(self, step: Step, now: float) -> None:
        """A stage's artifact is there, made or found made."""
        began = self._at_work.pop(step.ref.path, None)
        if began is not None:
            self._taken[step.stage].append(now - began)
            self._left = None

    def seconds(self, now: float) -> float | None:
        """Seconds left of all stages; None where one of them has not been measured, or several are at work."""
        if self._ahead is None or self._left is None or len(self._at_work) != 1:
            return None
        ahead = {stage: number for stage, number in self._ahead.items() if number > 0}
        if not ahead or not ahead.keys() <= self._taken.keys():
            return None
        left, said = self._left
        return max(left - (now - said), 0.0) + sum(
            number * fmean(self._taken[stage]) for stage, number in ahead.items()
        )


def told(seconds: float | None) -> str:
    """`~6 min left in all`; empty where nothing can be said."""
    return "" if seconds is None else f"{spelled(seconds)} left in all"
