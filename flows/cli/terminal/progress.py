"""Progress of a run in the terminal: one line for each finished stage, and a progress bar for each open stage.

In a pipe or a log, which has no progress bar, a long stage prints a progress line every 15 seconds.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from contextlib import contextmanager, nullcontext
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from bsl.flows.cli.terminal.log_lines import printable
from bsl.models.runtime.progress import Progress, spelled
from bsl.storage.artifacts.refs import kind_of
from bsl.tasks.rendering.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import TaskID

    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.progress import Event, StageRun

SECONDS_BETWEEN_LINES: Final = 15.0


class Terminal:
    """Listener that prints the stages of a run to `console`."""

    def __init__(self, console: Console, store: Store, plan: Sequence[StageRun] | None) -> None:
        self.console = console
        self._store = store
        distinct = None if plan is None else list({step.ref.path: step for step in plan}.values())
        self._total = None if distinct is None else len(distinct)
        self._numbers: dict[str, int] = {}
        self._lock = threading.RLock()  # a sweep runs several points in parallel threads
        self._open = threading.local()
        self._made: set[str] = set()
        self._ended: set[str] = set()
        self._announced: set[str] = set()
        self._reporting: set[str] = set()  # stages that report their progress
        self._last_line = 0.0
        self._remaining = Remaining(distinct)

    def __call__(self, event: Event, value: Any) -> None:  # noqa: ANN401 - by the event
        """Show an event by calling the method with its name."""
        with self._lock:
            getattr(self, event)(value)

    def begins(self, step: StageRun) -> None:
        """Record a stage's start time, and number it unless it is part of another stage or not in the plan."""
        began, path = self._began(), step.ref.path
        if not began and path not in self._numbers and self._remaining.begins(step):
            self._numbers[path] = len(self._numbers) + 1
        began[path] = time.monotonic()

    def makes(self, step: StageRun) -> None:
        """Record that a stage computes its artifact, which is not in the store."""
        self._made.add(step.ref.path)
        if len(self._began()) <= 1:
            self._last_line = time.monotonic()
            self._remaining.makes(step, self._last_line)
            self.show(self._number(step.ref.path), Progress(_title(step), 0, 0), step.ref.path)

    def advances(self, progress: Progress) -> None:
        """Show the progress of the stage."""
        began = list(self._began())
        self._reporting.update(began[-1:])
        if len(began) <= 1:
            self._remaining.advances(progress, time.monotonic())
        self.show(self._number(*began[:1]), progress, "".join(began[-1:]))

    def ends(self, step: StageRun) -> None:
        """Print the line of a finished stage, unless it is part of a stage that reports its own progress."""
        began = self._began()
        seconds = time.monotonic() - began.pop(step.ref.path)
        self.close(step.ref.path)
        if not began:
            self._remaining.ends(step, time.monotonic())
        elif next(reversed(began)) in self._reporting:
            return
        made = step.ref.path in self._made
        self._made.discard(step.ref.path)
        if not made and step.ref.path in self._ended:
            return  # another point of the sweep found an artifact whose line is already printed
        self._ended.add(step.ref.path)
        rows = self._rows(step) if made else ""
        title = f"{'  ' * len(began)}{_title(step)}"
        line = f"{self._number(step.ref.path)}{title:<19} {'made' if made else 'cached':<6} {rows:>17} "
        line += f"{seconds:>7.1f} s" if made else " " * 9
        if len(with_ref := f"{line}  {step.ref}") <= self.console.width or not self.console.is_terminal:
            line = with_ref
        self.console.print(Text(printable(line.rstrip()), style="" if made else "dim"), soft_wrap=True)

    def fails(self, step: StageRun) -> None:
        """Drop a failed stage, so that later stages do not count as its parts."""
        began = self._began()
        began.pop(step.ref.path)
        self.close(step.ref.path)
        if not began:
            self._remaining.ends(step, time.monotonic())

    def tells(self, text: str) -> None:
        """Print a message once; the points of a sweep repeat it."""
        if text in self._announced:
            return
        self._announced.add(text)
        self.console.print(Text(printable(text), style="bold"), soft_wrap=True)

    def show(self, number: str, progress: Progress, path: str = "") -> None:  # noqa: ARG002  a bar has the path
        """Print a progress line, at most one every `SECONDS_BETWEEN_LINES`."""
        now = time.monotonic()
        if now - self._last_line >= SECONDS_BETWEEN_LINES and progress.total:
            self._last_line = now
            line = f"{number}{progress.what}: {progress.done:,} of {progress.total:,} · {self._status(progress)}"
            self.console.print(Text(printable(line.removesuffix(" · "))), soft_wrap=True)

    def close(self, path: str) -> None:
        """Forget the progress of a stage; lines stay."""

    def _status(self, progress: Progress) -> str:
        return progress.status(time_left(self._remaining.seconds(time.monotonic())))

    def _began(self) -> dict[str, float]:
        """Return the start times of the current stages of this thread, the outermost stage first."""
        began: dict[str, float] = self._open.__dict__.setdefault("began", {})
        return began

    def _rows(self, step: StageRun) -> str:
        unit = kind_of(step.ref.kind).unit
        return counted(self._store.manifest(step.ref).rows, unit) if unit else ""

    def _number(self, path: str = "") -> str:
        """Return a stage's number: `3/12 `, `3 ` if the total is unknown, or spaces for a part of another stage."""
        number = self._numbers.get(path)
        if self._total is None:
            return f"{number or '':>2} " if self._numbers else ""
        width = len(str(self._total))
        return f"{number:>{width}}/{self._total} " if number else " " * (2 * width + 2)


class LiveTerminal(Terminal):
    """Listener that also shows a progress bar at the bottom of the terminal."""

    def __init__(self, console: Console, store: Store, plan: Sequence[StageRun] | None) -> None:
        super().__init__(console, store, plan)
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # truncated in a narrow terminal
        self.progress = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            TextColumn("{task.fields[status]}", table_column=rest),
            console=console,
            transient=True,
            expand=True,
        )
        self._bars: dict[str, TaskID] = {}  # path of a stage's artifact → its bar

    def show(self, number: str, progress: Progress, path: str = "") -> None:
        """Update the bar of a stage, or add one."""
        what, status = (Text(printable(x)).markup for x in (f"{number}{progress.what}", self._status(progress)))
        state: dict[str, Any] = {"total": progress.total or None, "completed": progress.done, "status": status}
        if path in self._bars:
            self.progress.update(self._bars[path], description=what, **state)
        else:
            self._bars[path] = self.progress.add_task(what, **state)

    def close(self, path: str) -> None:
        """Remove the bar of a finished or failed stage."""
        if path in self._bars:
            self.progress.remove_task(self._bars.pop(path))


@contextmanager
def watching(store: Store, plan: Sequence[StageRun] | None, console: Console | None = None) -> Iterator[Terminal]:
    """Show the stages that this process runs inside the context.

    Args:
        store: Store of their artifacts.
        plan: All stages; None if later stages depend on results: then stages are only counted.
        console: The console to print to; standard output by default.
    """
    from bsl.tasks.stage.progress import listening  # slow import, not needed for help

    console = console or Console()
    terminal = (LiveTerminal if console.is_terminal else Terminal)(console, store, plan)
    with terminal.progress if isinstance(terminal, LiveTerminal) else nullcontext(), listening(terminal):
        yield terminal


def _title(step: StageRun) -> str:
    return step.stage.replace("_", " ")


class Remaining:
    """Estimate the remaining time of a run from the durations of its stages.

    Args:
        plan: All stages, each once; None if unknown.
    """

    def __init__(self, plan: Sequence[StageRun] | None) -> None:
        self._ahead = None if plan is None else Counter(step.stage for step in plan)
        self._durations: dict[str, list[float]] = defaultdict(list)
        self._computing: dict[str, float] = {}  # path of a computing stage → start time
        self._left: tuple[float, float] | None = None  # seconds left of the computing stage, time of that estimate

    def begins(self, step: StageRun) -> bool:
        """Record a stage's first call; return whether the plan has another stage of its name (True without a plan)."""
        if self._ahead is None:
            return True
        self._ahead[step.stage] -= 1
        return self._ahead[step.stage] >= 0

    def makes(self, step: StageRun, now: float) -> None:
        """Record that a stage starts computing at `now`."""
        self._computing[step.ref.path], self._left = now, None

    def advances(self, progress: Progress, now: float) -> None:
        """Record the progress of the computing stage."""
        self._left = None if progress.left is None else (progress.left, now)

    def ends(self, step: StageRun, now: float) -> None:
        """Record that a stage's artifact exists, computed or cached."""
        began = self._computing.pop(step.ref.path, None)
        if began is not None:
            self._durations[step.stage].append(now - began)
            self._left = None

    def seconds(self, now: float) -> float | None:
        """Return the remaining seconds of all stages; None if a stage has no measured duration, or several compute."""
        if self._ahead is None or self._left is None or len(self._computing) != 1:
            return None
        ahead = {stage: number for stage, number in self._ahead.items() if number > 0}
        if not ahead or not ahead.keys() <= self._durations.keys():
            return None
        left, measured_at = self._left
        return max(left - (now - measured_at), 0.0) + sum(
            number * fmean(self._durations[stage]) for stage, number in ahead.items()
        )


def time_left(seconds: float | None) -> str:
    """Return a text such as `~6 min left in total`; empty without an estimate."""
    return "" if seconds is None else f"{spelled(seconds)} left in total"
