"""A run prints its progress: one line per stage, numbered by the plan."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from rich.console import Console

from bsl.flows.cli.terminal import progress as watching
from bsl.flows.cli.terminal.progress import LiveTerminal, Terminal
from bsl.models.runtime.progress import Progress
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef, CheckpointRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.progress import StageRun

VIEWS = StageRun("make_views", ViewsRef(key=f"{7:064x}"))
SHARD = StageRun("translate", ArtifactRef(kind="translations/ab", key=f"{8:064x}"))
LAST = StageRun("report", ArtifactRef(kind="report", key=f"{9:064x}"))


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path))
    with store.draft(VIEWS.ref, Provenance(stage_version=1, config={})) as draft:
        frame = pl.DataFrame({"sentence_id": [1, 2], "method": ["original"] * 2, "text": ["[b]A[/b] cat.", "B"]})
        draft.write(frame.cast({"sentence_id": pl.UInt64}))
    return store


def printed(terminal_of, store, **console) -> str:
    out = io.StringIO()
    terminal = terminal_of(Console(file=out, **console), store, [VIEWS, LAST])
    terminal.begins(VIEWS)
    terminal.makes(VIEWS)
    terminal.advances(Progress("translation en→[de]", 5, 10, "7 tokens/s"))
    terminal.begins(SHARD)
    terminal.ends(SHARD)
    terminal.ends(VIEWS)
    terminal.begins(VIEWS)
    terminal.ends(VIEWS)
    return out.getvalue()


def test_stage_line_shows_number_rows_and_artifact_once(store):
    made, *later = printed(Terminal, store, width=100).splitlines()
    assert made.split()[:6] == ["1/2", "make", "views", "made", "2", "views"]
    assert made.endswith(f"s  {VIEWS.ref}")
    assert not any("views" in line for line in later), "what this run has made it does not tell of again"


def test_cached_stage_line_shows_cached(store):
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=100), store, [VIEWS])
    terminal.begins(VIEWS)
    terminal.ends(VIEWS)
    assert out.getvalue().split() == ["1/1", "make", "views", "cached", str(VIEWS.ref)]


def lines_of(store, plan, *walk):
    """Return the lines of a simulated run: each step with the steps inside it, and whether it counts its parts."""
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=100), store, plan)
    for outer, inner, counts in walk:
        terminal.begins(outer)
        if counts:
            terminal.advances(Progress("shards", 0, 10))
        for part in inner:
            terminal.begins(part)
            terminal.ends(part)
        terminal.ends(outer)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_stages_without_a_plan_are_counted(store):
    first, second = lines_of(store, None, (VIEWS, [], False), (LAST, [], False), (VIEWS, [], False))
    assert first.split() == ["1", "make", "views", "cached", str(VIEWS.ref)]
    assert second.split() == ["2", "report", "cached", str(LAST.ref)]


def test_unplanned_stage_has_a_line_without_a_number(store):
    other, last = lines_of(store, [LAST], (VIEWS, [], False), (LAST, [], False))
    assert other.split() == ["make", "views", "cached", str(VIEWS.ref)]
    assert last.split()[0] == "1/1"


def test_duplicate_planned_stage_is_counted_once(store):
    (line,) = lines_of(store, [VIEWS, VIEWS, LAST], (VIEWS, [], False))
    assert line.split()[0] == "1/2"


def test_nested_stage_is_indented_unless_parent_counts_parts(store):
    part, whole = lines_of(store, [LAST], (LAST, [SHARD], False))
    assert part.startswith("      translate")
    assert whole.startswith("1/1 report")
    assert not any("translate" in line for line in lines_of(store, [LAST], (LAST, [SHARD], True)))


def test_stage_after_a_failed_stage_is_not_nested(store):
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=100), store, [VIEWS, LAST])
    terminal.begins(VIEWS)
    terminal.makes(VIEWS)
    terminal.advances(Progress("views", 1, 2))
    terminal.fails(VIEWS)
    terminal.begins(LAST)
    terminal.ends(LAST)
    assert out.getvalue().split()[:2] == ["2/2", "report"]


def test_progress_line_shows_rate_and_time_left(store, monkeypatch):
    monkeypatch.setattr(watching, "SECONDS_BETWEEN_LINES", 0.0)
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=100), store, [LAST])
    terminal.begins(LAST)
    terminal.advances(Progress("embedding, sentences", 5000, 20_000, "", rate=50.0, left=300.0))
    assert out.getvalue() == "1/1 embedding, sentences: 5,000 of 20,000 · 50/s · ~5 min left\n"


def test_live_terminal_fits_lines_to_a_narrow_width(store):
    lines = printed(LiveTerminal, store, width=60, force_terminal=True, color_system=None).splitlines()
    assert max(map(len, lines)) <= 60
    assert "2 views" in lines[0]


def test_progress_bar_does_not_interpret_markup(store):
    live = LiveTerminal(Console(file=io.StringIO(), width=100), store, [VIEWS])
    live.advances(Progress("translation en→[de]", 5, 10, "[b]7[/b]"))
    live.advances(Progress("translation en→[de]", 6, 10, "[b]8[/b]", rate=3.0, left=400.0))
    (bar,) = live.progress.tasks
    assert (bar.completed, bar.total) == (6, 10)
    live.progress.print(live.progress)
    shown = live.console.file.getvalue()
    assert "en→[de]" in shown
    assert "60% 3/s · ~7 min left · [b]8[/b]" in shown


def test_stages_of_several_threads_have_a_bar_each(store):
    live = LiveTerminal(Console(file=io.StringIO(), width=100), store, None)
    steps = [StageRun("train", CheckpointRef(key=str(number) * 64)) for number in range(4)]
    meeting = threading.Barrier(len(steps) + 1, timeout=60)

    def work(step):
        live("begins", step)
        for done in range(300):
            live("advances", Progress(f"training {step.ref.key[0]}", done, 300))
        meeting.wait()
        meeting.wait()
        live("fails", step)

    with ThreadPoolExecutor(len(steps)) as pool:
        running = [pool.submit(work, step) for step in steps]
        meeting.wait()
        bars = {(bar.description[3:], bar.completed) for bar in live.progress.tasks}
        meeting.wait()
    for one in running:
        one.result()
    assert bars == {(f"training {number}", 299) for number in range(4)}
    assert live.progress.tasks == []
