"""What a run prints as it goes: a line a stage, numbered by the plan."""

import io

import polars as pl
import pytest
from rich.console import Console

from flows.cli.watching import LiveTerminal, Terminal
from storage.manifest import Provenance
from storage.refs import ArtifactRef, ViewsRef
from storage.store import Store
from tasks.stage.watch import Step

VIEWS = Step("make_views", ViewsRef(key=f"{7:064x}"))
SHARD = Step("translate", ArtifactRef(kind="translations/ab", key=f"{8:064x}"))
LAST = Step("report", ArtifactRef(kind="report", key=f"{9:064x}"))


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
    terminal.begins(SHARD)
    terminal.advances("translation en→[de]", 5, 10, "7 tokens/s")
    terminal.ends(SHARD)
    terminal.ends(VIEWS)
    terminal.begins(VIEWS)
    terminal.ends(VIEWS)
    return out.getvalue()


def test_a_line_says_what_was_made_and_what_was_found(store):
    made, *_, found = printed(Terminal, store, width=100).splitlines()
    assert made.split()[:6] == ["1/2", "make", "views", "made", "2", "views"]
    assert made.endswith(f"s  {VIEWS.ref}")
    assert found.split()[:4] == ["1/2", "make", "views", "made"]  # by this process, so it says so again


def test_a_stage_that_was_there_is_cached(store):
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=100), store, [VIEWS])
    terminal.begins(VIEWS)
    terminal.ends(VIEWS)
    assert out.getvalue().split() == ["1/1", "make", "views", "cached", str(VIEWS.ref)]


def test_what_no_plan_foresaw_has_a_line_without_a_number(store):
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=100), store, [])
    terminal.begins(VIEWS)
    terminal.ends(VIEWS)
    assert out.getvalue().split() == ["make", "views", "cached", str(VIEWS.ref)]


def test_a_part_of_a_stage_has_no_line(store):
    assert str(SHARD.ref) not in printed(Terminal, store, width=100)


def test_a_narrow_terminal_gets_whole_lines(store):
    lines = printed(LiveTerminal, store, width=60, force_terminal=True, color_system=None).splitlines()
    assert max(map(len, lines)) <= 60
    assert "2 views" in lines[0]


def test_the_bar_shows_foreign_text_as_it_is(store):
    live = LiveTerminal(Console(file=io.StringIO(), width=100), store, [VIEWS])
    live.advances("translation en→[de]", 5, 10, "[b]7[/b]")
    live.advances("translation en→[de]", 6, 10, "[b]8[/b]")
    (bar,) = live.progress.tasks
    assert (bar.completed, bar.total) == (6, 10)
    live.progress.print(live.progress)
    assert "en→[de]" in live.console.file.getvalue()
