"""A stage is a cache hit while its artifact is intact; a damaged artifact is made again, and no other."""

import errno
import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from fsspec.implementations.local import LocalFileSystem
from prefect import flow, get_client
from prefect.client.schemas.sorting import TaskRunSort
from pydantic import BaseModel, ConfigDict

from bsl.storage.artifacts.refs import CorpusRef, PairsRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.progress import listening, planning
from bsl.tasks.stage.run_context import RunContext

calls: list[str] = []


class Size(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    rows: int


@stage(ref=CorpusRef, version=1)
def sentences(context: StageContext, config: Size) -> None:
    """Make a corpus."""
    calls.append("sentences")
    ids = pl.Series("sentence_id", range(config.rows), dtype=pl.UInt64)
    context.draft.write(
        pl.DataFrame([ids]).with_columns(text=pl.format("s{}", "sentence_id"), source=pl.lit("t"), lang=pl.lit("en"))
    )


@stage(ref=PairsRef, version=1)
def doubled(context: StageContext, corpus: CorpusRef, config: Size) -> None:
    """Pair each sentence with itself."""
    calls.append("doubled")
    pairs = context.store.scan(corpus).select(
        pair_id="sentence_id",
        sentence_id="sentence_id",
        text_1="text",
        text_2="text",
        lang_1="lang",
        lang_2="lang",
        source="source",
        label=pl.lit(None, pl.Int8),
        score=pl.lit(None, pl.Float32),
        group=pl.lit(None, pl.UInt64),
    )
    context.draft.write(pairs.collect())


@flow
def both(site: RunContext, rows: int) -> PairsRef:
    return doubled(site, sentences(site, Size(rows=rows)), Size(rows=1))


@pytest.fixture
def run(tmp_path):
    site = RunContext(store=str(tmp_path / "store"))

    def call(rows: int = 3) -> tuple[list[str], PairsRef, Store]:
        calls.clear()
        state = both(site, rows, return_state=True)
        return list(calls), state.result(), site.open_store()

    return call


def test_planning_runs_no_stage_and_returns_the_same_refs(run, tmp_path):
    site = RunContext(store=str(tmp_path / "store"))
    with planning() as plan:
        planned = both.fn(site, 3)
    assert calls == []
    assert site.open_store().refs() == []
    _, ref, _ = run()
    assert planned == ref
    assert [step.stage for step in plan] == ["sentences", "doubled"]


def test_planning_in_one_thread_does_not_stop_the_stages_of_another(tmp_path):
    calls.clear()
    with planning() as plan, ThreadPoolExecutor(1) as other:
        corpus = other.submit(sentences, RunContext(store=str(tmp_path / "store")), Size(rows=3)).result()
    assert calls == ["sentences"]
    assert [ref.path for ref in Store(str(tmp_path / "store")).refs()] == [corpus.path]
    assert plan == []


def test_progress_listener_receives_events_of_made_and_cached_stages(run):
    heard = []

    def listener(event, step):
        heard.append((event, step.stage))

    with listening(listener):
        run()
        run()
    made = [(event, stage) for stage in ("sentences", "doubled") for event in ("begins", "makes", "ends")]
    assert heard == made + [event for event in made if event[0] != "makes"]
    run(4)
    assert len(heard) == 10  # listening has ended


def test_second_run_executes_no_stage(run):
    first, ref, store = run()
    assert first == ["sentences", "doubled"]
    assert store.scan(ref).collect().height == 3
    second, again, _ = run()
    assert second == []
    assert again == ref


def test_changed_config_changes_the_artifact_key(run):
    _, three, _ = run(3)
    made, four, _ = run(4)
    assert made == ["sentences", "doubled"]
    assert three.key != four.key


def test_artifact_with_flipped_byte_is_rebuilt_alone(run, caplog):
    _, ref, store = run()
    victim = next((store.local / "corpus").glob("*/corpus-*.parquet"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="bsl.tasks"):
        made, again, _ = run()
    assert made == ["sentences"]  # its content is unchanged, so the pairs made from it stay valid
    assert again == ref
    assert "making corpus/" in caplog.text
    assert "sha256" in caplog.text


def test_deleted_artifact_is_rebuilt_with_a_warning(run, caplog):
    _, ref, store = run()
    shutil.rmtree(store.local / ref.path)
    with caplog.at_level(logging.WARNING, logger="bsl.tasks"):
        made, again, _ = run()
    assert made == ["doubled"]
    assert again == ref
    assert f"making {ref} again" in caplog.text


def test_changed_input_content_rebuilds_dependent_artifacts(run):
    _, _, store = run()
    corpus = store.refs("corpus")[0]
    manifest = store.manifest(corpus)
    store.remove(corpus)
    with store.draft(corpus, manifest.provenance) as draft:  # simulates a run on other hardware
        draft.write(
            pl.DataFrame(
                {"sentence_id": [7], "text": ["x"], "source": ["t"], "lang": ["en"]},
                schema_overrides={"sentence_id": pl.UInt64},
            )
        )
    made, again, _ = run()
    assert made == ["doubled"]
    assert store.scan(again).collect()["text_1"].to_list() == ["x"]


def test_prefect_reports_a_cache_hit_as_cached_state(run, caplog):
    run()
    with caplog.at_level(logging.INFO, logger="prefect.task_runs"):
        run()
    assert caplog.text.count("Finished in state Cached(type=COMPLETED)") == 2


def test_cache_hit_updates_the_last_used_time(run):
    _, ref, store = run()
    record = store.local / ".records" / f"{ref.path}.json"
    os.utime(record, (0, 0))
    assert run()[0] == []
    assert store.last_used(store.manifest(ref)).timestamp() == pytest.approx(record.stat().st_mtime, rel=0, abs=1)
    assert record.stat().st_mtime > 0


def test_cache_hit_succeeds_on_a_read_only_store(run, monkeypatch):
    run()
    monkeypatch.setattr(LocalFileSystem, "pipe_file", refuse)
    assert run()[0] == []


def refuse(*_: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_ui_graph_connects_stages_also_on_cache_hits(run):
    run()
    run()
    with get_client(sync_client=True) as client:
        tasks = client.read_task_runs(sort=TaskRunSort.EXPECTED_START_TIME_ASC, limit=200)
    stages = [task for task in tasks if task.name.startswith(("sentences-", "doubled-"))][-4:]
    for upstream, downstream in (stages[:2], stages[2:]):
        assert [entry.id for entry in downstream.task_inputs["arguments"]] == [upstream.id]
    assert [task.state_name for task in stages] == ["Completed", "Completed", "Cached", "Cached"]
