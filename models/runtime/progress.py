"""The progress of long work: how much is done, at what rate, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[int, int, str], None]
"""Called as (done, in all, detail)."""


@dataclass(frozen=True)
class Progress:
    """How far a count has come.

    Attributes:
        what: what is counted, such as `translation en→de, sentences`.
        done, total: how many, and of how many.
        detail: what else there is to say; may be empty.
        rate: units a second; None before the second report.
        left: seconds to the end of the stage, by that rate; None where the rate or what follows is not known.
    """

    what: str
    done: int
    total: int
    detail: str = ""
    rate: float | None = None
    left: float | None = None

    @property
    def pace(self) -> str:
        """`120/s`; empty where it is not known."""
        if self.rate is None:
            return ""
        return f"{self.rate:,.0f}/s" if self.rate >= 10 else f"{self.rate:.2g}/s"


class Count:
    """Turns a count's reports into `Progress`.

    The rate is that from the first report to the last: what came before the first was loading, or was done by a run
    that was killed.

    Args:
        what: what is counted.
        following: counts of the same size that follow in the same stage; None where nobody knows.
    """

    def __init__(self, what: str, following: int | None = 0) -> None:
        self._what, self._following = what, following
        self._first: tuple[int, float] | None = None
        self._last = 0

    def told(self, done: int, total: int, detail: str, now: float) -> Progress:
        """A report at `now`, in seconds; one that falls behind the last begins another count."""
        if self._first is None or done < self._last:
            self._first = done, now
        self._last = done
        first, since = self._first
        rate = (done - first) / (now - since) if done > first and now > since else None
        return Progress(self._what, done, total, detail, rate, self._left(done, total, rate))

    def _left(self, done: int, total: int, rate: float | None) -> float | None:
        # A total that only grows with what is done, as that of a Hub's table, says nothing once it is reached.
        if rate is None or self._following is None or done >= total:
            return None
        return (total - done + self._following * total) / rate


def spelled(seconds: float) -> str:
    """An estimate in round numbers: `~40 s`, `~6 min`, `~2.5 h`."""
    if seconds < 90:
        return f"~{max(5, 5 * round(seconds / 5))} s"
    return f"~{seconds / 60:.0f} min" if seconds < 90 * 60 else f"~{seconds / 3600:.1f} h"
