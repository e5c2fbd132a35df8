"""A run as the terminal shows it: a line a finished stage, and below them, where a person watches, what goes on now.

Through a pipe or in a log there is no moving part: how far a long stage has come is a line now and then.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from flows.cli.remaining import Remaining, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import TaskID

    from storage.store import Store
    from tasks.stage.watch import Step

SECONDS_BETWEEN_LINES: Final = 15.0
UNITS: Final = {"corpus": "sentences", "views": "views", "pairs": "pairs", "embeddings": "vectors"}  # of rows


class Terminal:
    """A watcher that prints.

    Attributes:
        console: where to.
    """

    def __init__(self, console: Console, store: Store, plan: Sequence[Step]) -> None:
        self.console = console
        self._store = store
        self._numbers = {step.ref.path: number for number, step in enumerate(plan, start=1)}
        self._open = threading.local()  # a sweep runs several points side by side
        self._made: set[str] = set()
        self._told = 0.0
        self._remaining = Remaining(plan)

    def begins(self, step: Step) -> None:
        """Start its clock."""
        self._began()[step.ref.path] = time.monotonic()

    def makes(self, step: Step) -> None:
        """Remember that it was not there."""
        self._made.add(step.ref.path)
        self._told = time.monotonic()
        self._remaining.makes(step, self._told)
        if len(self._began()) == 1:
            self.show(f"{self._place(step)}{_title(step)}", 0, None, "")

    def advances(self, what: str, done: int, total: int, detail: str) -> None:
        """Show how far it has come."""
        self._remaining.advances(done, total, time.monotonic())
        self.show(what, done, total, detail)

    def ends(self, step: Step) -> None:
        """Print its line, unless it was part of another."""
        began = self._began().pop(step.ref.path)
        self._remaining.ends(step, time.monotonic())
        if self._began():
            return
        made = step.ref.path in self._made
        rows = self._rows(step) if made else ""
        seconds = f"{time.monotonic() - began:>8.1f} s" if made else " " * 10
        line = f"{self._place(step)}{_title(step):<16} {'made' if made else 'cached':<6} {rows:>18} {seconds}"
        if len(whole := f"{line}  {step.ref}") <= self.console.width or not self.console.is_terminal:
            line = whole
        self.console.print(Text(line.rstrip(), style="" if made else "dim"), soft_wrap=True)

    def show(self, what: str, done: int, total: int | None, detail: str) -> None:
        """A line now and then."""
        now = time.monotonic()
        if now - self._told >= SECONDS_BETWEEN_LINES and total:
            self._told = now
            line = " · ".join(filter(None, [f"      {what}: {done:,} of {total:,}", detail, self._left()]))
            self.console.print(Text(line), soft_wrap=True)

    def _left(self) -> str:
        return told(self._remaining.seconds(time.monotonic()))

    def _began(self) -> dict[str, float]:
        """When the stages that are open in this thread began, the outermost first."""
        began: dict[str, float] = self._open.__dict__.setdefault("began", {})
        return began

    def _rows(self, step: Step) -> str:
        unit = UNITS.get(step.ref.kind)
        return f"{self._store.manifest(step.ref).rows:,} {unit}" if unit else ""

    def _place(self, step: Step) -> str:
        """`3/12 `; empty for what no plan foresaw."""
        if step.ref.path not in self._numbers:
            return ""
        width = len(str(len(self._numbers)))
        return f"{self._numbers[step.ref.path]:>{width}}/{len(self._numbers)} "


class LiveTerminal(Terminal):
    """The same with a bar that moves, at the bottom."""

    def __init__(self, console: Console, store: Store, plan: Sequence[Step]) -> None:
        super().__init__(console, store, plan)
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # of a narrow terminal
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[detail]}", table_column=rest),
            console=console,
            transient=True,
            expand=True,
        )
        self._bar: TaskID | None = None

    def show(self, what: str, done: int, total: int | None, detail: str) -> None:
        """Move the bar, or begin another."""
        what, detail = Text(what).markup, Text(detail).markup
        current = None if self._bar is None else self.progress.tasks[0]
        if current is None or current.description != what:
            if self._bar is not None:
                self.progress.remove_task(self._bar)
            self._bar = self.progress.add_task(what, total=total, completed=done, detail=detail, left=self._left())
        else:
            self.progress.update(current.id, total=total, completed=done, detail=detail, left=self._left())


@contextmanager
def watching(store: Store, plan: Sequence[Step]) -> Iterator[Terminal]:
    """Show the stages that this process runs meanwhile; `plan` numbers them, as far as they are foreseen."""
    from tasks.stage.watch import watched_by  # imports Prefect's neighbours, for which help shall not wait

    console = Console()
    if not console.is_terminal:
        terminal = Terminal(console, store, plan)
        with watched_by(terminal):
            yield terminal
        return
    live = LiveTerminal(console, store, plan)
    with live.progress, watched_by(live):
        yield live


def _title(step: Step) -> str:
    return step.stage.replace("_", " ")
