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


def printed(terminal: Terminal, *calls) -> list[str]:
    """Call methods of a terminal and return the lines that it printed."""
    for event, value in calls:
        terminal(event, value)
    return terminal.console.file.getvalue().splitlines()


def on(width=100, **options) -> Console:
    return Console(file=io.StringIO(), width=width, **options)


def steps(*cached) -> list:
    return [(event, step) for step in cached for event in ("begins", "ends")]


def shards(of, counted):
    """Return the calls of a stage with a shard inside it, and whether it counts its shards."""
    count = [("advances", Progress("shards", 0, 10))] if counted else []
    return [("begins", of), *count, *steps(SHARD), ("ends", of)]


MADE = [
    ("begins", VIEWS), ("makes", VIEWS), ("advances", Progress("translation en→[de]", 5, 10, "7 tokens/s")),
    *steps(SHARD), ("ends", VIEWS), *steps(VIEWS),
]  # fmt: skip


def test_stage_line_shows_number_rows_and_artifact_once(store):
    (made,) = printed(Terminal(on(), store, [VIEWS, LAST]), *MADE)  # of what this run has made it tells only once
    assert made.split()[:6] == ["1/2", "make", "views", "made", "2", "views"]
    assert made.endswith(f"s  {VIEWS.ref}")


@pytest.mark.parametrize(
    ("plan", "calls", "numbers"),
    [
        ([VIEWS], [VIEWS], ["1/1"]),
        (None, [VIEWS, LAST, VIEWS], ["1", "2"]),
        ([LAST], [VIEWS, LAST], ["", "1/1"]),
        ([VIEWS, VIEWS, LAST], [VIEWS], ["1/2"]),
    ],
    ids=["planned", "no plan", "unplanned stage", "planned twice"],
)
def test_cached_stages_are_numbered_by_the_plan(store, plan, calls, numbers):
    lines = printed(Terminal(on(), store, plan), *steps(*calls))
    titles = {VIEWS: "make views", LAST: "report"}
    assert [line.split() for line in lines] == [
        f"{number} {titles[step]} cached {step.ref}".split() for number, step in zip(numbers, calls, strict=False)
    ]


def test_nested_stage_is_indented_unless_parent_counts_parts(store):
    part, whole = printed(Terminal(on(), store, [LAST]), *shards(LAST, counted=False))
    assert part.startswith("      translate")
    assert whole.startswith("1/1 report")
    assert "translate" not in "".join(printed(Terminal(on(), store, [LAST]), *shards(LAST, counted=True)))


def test_stage_after_a_failed_stage_is_not_nested(store):
    failed = [("begins", VIEWS), ("makes", VIEWS), ("advances", Progress("views", 1, 2)), ("fails", VIEWS)]
    (line,) = printed(Terminal(on(), store, [VIEWS, LAST]), *failed, *steps(LAST))
    assert line.split()[:2] == ["2/2", "report"]


def test_progress_line_shows_rate_and_time_left_and_messages_are_printed_once(store, monkeypatch):
    monkeypatch.setattr(watching, "SECONDS_BETWEEN_LINES", 0.0)
    terminal = Terminal(on(), store, [LAST])
    progress = Progress("embedding, sentences", 5000, 20_000, "", rate=50.0, left=300.0)
    told = [("tells", "precision: fp32")] * 2
    lines = printed(terminal, ("begins", LAST), ("advances", progress), *told)
    assert lines == ["1/1 embedding, sentences: 5,000 of 20,000 · 50/s · ~5 min left", "precision: fp32"]


def test_live_terminal_fits_lines_to_a_narrow_width(store):
    live = LiveTerminal(on(60, force_terminal=True, color_system=None), store, [VIEWS, LAST])
    lines = printed(live, *MADE)
    assert max(map(len, lines)) <= 60
    assert "2 views" in lines[0]


def test_progress_bar_does_not_interpret_markup(store):
    live = LiveTerminal(on(), store, [VIEWS])
    live.advances(Progress("translation en→[de]", 5, 10, "[b]7[/b]"))
    live.advances(Progress("translation en→[de]", 6, 10, "[b]8[/b]", rate=3.0, left=400.0))
    (bar,) = live.progress.tasks
    assert (bar.completed, bar.total) == (6, 10)
    live.progress.print(live.progress)
    shown = live.console.file.getvalue()
    assert "en→[de]" in shown
    assert "60% 3/s · ~7 min left · [b]8[/b]" in shown


def test_stages_of_several_threads_have_a_bar_each(store):
    live = LiveTerminal(on(), store, None)
    trainings = [StageRun("train", CheckpointRef(key=str(number) * 64)) for number in range(4)]
    meeting = threading.Barrier(len(trainings) + 1, timeout=60)

    def work(step):
        live("begins", step)
        for done in range(300):
            live("advances", Progress(f"training {step.ref.key[0]}", done, 300))
        meeting.wait()
        meeting.wait()
        live("fails", step)

    with ThreadPoolExecutor(len(trainings)) as pool:
        running = [pool.submit(work, step) for step in trainings]
        meeting.wait()
        bars = {(bar.description[3:], bar.completed) for bar in live.progress.tasks}
        meeting.wait()
    for one in running:
        one.result()
    assert bars == {(f"training {number}", 299) for number in range(4)}
    assert live.progress.tasks == []
