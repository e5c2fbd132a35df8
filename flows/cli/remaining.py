"""How long a run still takes, as an estimate: what its stages weigh, at the pace that was measured so far.

The weights are the seconds of recipe `tiny` on two quiet cores. Only their proportions matter, and those of a run of
another size or machine differ: what is measured outweighs them as the run comes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.stage.watch import Step

WEIGHTS: Final = {"make_views": 44.0, "train": 56.0, "embed": 8.0, "embed_tfidf": 1.6, "report": 2.2}
_LIGHT: Final = 0.4  # of any other stage
_MEASURED: Final = frozenset({"train"})  # whose progress is one count from its begin to its end
_ENOUGH: Final = 3.0  # seconds of work, from which on a pace says something


class Remaining:
    """Told of a run's planned stages as they begin and end, it reckons the rest."""

    def __init__(self, plan: Sequence[Step]) -> None:
        self._ahead = {step.ref.path: WEIGHTS.get(step.stage, _LIGHT) for step in plan}
        self._done = self._spent = 0.0
        self._current: tuple[Step, float] | None = None
        self._told: list[tuple[float, float]] = []  # (share, when): where the current stage was first and last

    def makes(self, step: Step, now: float) -> None:
        """A planned stage computes, from `now` on."""
        if step.ref.path in self._ahead:
            self._current, self._told = (step, now), []

    def advances(self, done: int, total: int, now: float) -> None:
        """The stage that computes has come so far."""
        if self._current and self._current[0].stage in _MEASURED:
            self._told = [*self._told[:1], (done / max(total, 1), now)]

    def ends(self, step: Step, now: float) -> None:
        """A stage's artifact is there, made or found made."""
        weight = self._ahead.pop(step.ref.path, 0.0)
        if self._current and self._current[0].ref == step.ref:
            self._done, self._spent = self._done + weight, self._spent + now - self._current[1]
            self._current = None

    def seconds(self, now: float) -> float | None:
        """Seconds left of all stages; None while too little was measured."""
        if self._current is None:
            return None
        step, began = self._current
        weight, elapsed = self._ahead[step.ref.path], now - began
        rest = sum(self._ahead.values()) - weight
        if (own := self._own()) is not None:
            return own + rest * (self._spent + elapsed + own) / (self._done + weight)
        if self._spent < _ENOUGH and elapsed < _ENOUGH:
            return None
        pace = self._spent / self._done if self._spent >= _ENOUGH else 1.0
        # How far it has come nobody knows. Once it is late, so is all that follows.
        late = max(1.0, elapsed / (pace * weight))
        return max(pace * weight - elapsed, 0.1 * elapsed) + rest * pace * late

    def _own(self) -> float | None:
        """Seconds left of a stage that counts, at the rate between its first word and its last: it loads before."""
        if len(self._told) < 2:
            return None
        (first, since), (share, until) = self._told
        return (until - since) * (1 - share) / (share - first) if share > first else None


def told(seconds: float | None) -> str:
    """`~6 min left in all`; empty where nothing can be said."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"~{max(5, 5 * round(seconds / 5))} s left in all"
    return f"~{seconds / 60:.0f} min left in all" if seconds < 90 * 60 else f"~{seconds / 3600:.1f} h left in all"
