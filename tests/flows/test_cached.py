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
from prefect.client.schemas.filters import TaskRunFilter
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


@stage(ref=CorpusRef, version=1)
def failing(context: StageContext, config: Size) -> None:
    """Make another stage's artifact, and fail."""
    sentences(context.site, config)
    raise ValueError("after the artifact")


@flow
def fail(site: RunContext) -> CorpusRef:
    return failing(site, Size(rows=3))


@flow
def both(site: RunContext, rows: int) -> PairsRef:
    return doubled(site, sentences(site, Size(rows=rows)), Size(rows=1))


@pytest.fixture
def run(tmp_path):
    site = RunContext(store=str(tmp_path / "store"))

    def call(rows=3):
        calls.clear()
        state = both(site, rows, return_state=True)
        call.runs.append(state.state_details.flow_run_id)
        return list(calls), state.result(), site.open_store()

    call.runs = []  # ids of the flow runs

    return call


def test_planning_runs_no_stage_and_returns_the_same_refs(run, tmp_path):
    calls.clear()
    site = RunContext(store=str(tmp_path / "store"))
    with planning() as plan:
        planned = both.fn(site, 3)
        with ThreadPoolExecutor(1) as other:  # planning in one thread does not stop the stages of another
            corpus = other.submit(sentences, RunContext(store=str(tmp_path / "other")), Size(rows=3)).result()
    assert calls == ["sentences"]
    assert [ref.path for ref in Store(str(tmp_path / "other")).refs()] == [corpus.path]
    assert site.open_store().refs() == []
    assert run()[1] == planned
    assert [step.stage for step in plan] == ["sentences", "doubled"]


def test_a_published_artifact_stays_completed_if_the_stage_that_called_it_fails(tmp_path):
    site = RunContext(store=str(tmp_path / "store"))
    runs = [fail(site, return_state=True).state_details.flow_run_id for _ in range(2)]
    assert [ref.kind for ref in site.open_store().refs()] == ["corpus"]
    with get_client(sync_client=True) as client:
        of_runs = TaskRunFilter.model_validate({"flow_run_id": {"any_": runs}})
        stages = client.read_task_runs(task_run_filter=of_runs, sort=TaskRunSort.EXPECTED_START_TIME_ASC)
    assert [(task.name.partition("-")[0], task.state_name) for task in stages] == [
        ("failing", "Failed"), ("sentences", "Completed"), ("failing", "Failed"), ("sentences", "Cached"),
    ]  # fmt: skip


def test_second_run_executes_no_stage_and_is_shown_as_cached(run, caplog):
    heard = []
    with listening(lambda event, step: heard.append((event, step.stage))):
        first, ref, store = run()
        record = store.local / ".records" / f"{ref.path}.json"
        os.utime(record, (0, 0))
        with caplog.at_level(logging.INFO, logger="prefect.task_runs"):
            second, again, _ = run()
    assert (first, second) == (["sentences", "doubled"], [])
    assert store.scan(ref).collect().height == 3
    assert again == ref
    assert record.stat().st_mtime > 0  # a cache hit is a use
    made = [(event, stage) for stage in ("sentences", "doubled") for event in ("begins", "makes", "ends")]
    assert heard == made + [event for event in made if event[0] != "makes"]
    assert caplog.text.count("Finished in state Cached(type=COMPLETED)") == 2
    with get_client(sync_client=True) as client:
        of_runs = TaskRunFilter.model_validate({"flow_run_id": {"any_": run.runs}})
        stages = client.read_task_runs(task_run_filter=of_runs, sort=TaskRunSort.EXPECTED_START_TIME_ASC)
    for upstream, downstream in (stages[:2], stages[2:]):
        assert [entry.id for entry in downstream.task_inputs["arguments"]] == [upstream.id]
    assert [task.state_name for task in stages] == ["Completed", "Completed", "Cached", "Cached"]
    made, four, _ = run(4)
    assert made == ["sentences", "doubled"]
    assert four.key != ref.key
    assert len(heard) == 10  # listening has ended


def flip_a_byte_of_the_corpus(store, _):
    victim = next((store.local / "corpus").glob("*/corpus-*.parquet"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)


def delete_the_pairs(store, ref):
    shutil.rmtree(store.local / ref.path)


# Content of a rebuilt corpus is unchanged, so the pairs made from it stay valid.
DAMAGE = [(flip_a_byte_of_the_corpus, "sentences", "sha256"), (delete_the_pairs, "doubled", " again")]


@pytest.mark.parametrize(("spoil", "stage", "said"), DAMAGE)
def test_damaged_or_deleted_artifact_is_rebuilt_alone_with_a_warning(run, caplog, spoil, stage, said):
    _, ref, store = run()
    spoil(store, ref)
    with caplog.at_level(logging.WARNING, logger="bsl.tasks"):
        made, again, _ = run()
    assert (made, again) == ([stage], ref)
    assert f"making {'corpus' if stage == 'sentences' else 'pairs'}/" in caplog.text
    assert said in caplog.text


def test_changed_input_content_rebuilds_dependent_artifacts(run):
    _, _, store = run()
    corpus = store.refs("corpus")[0]
    manifest = store.manifest(corpus)
    store.remove(corpus)
    with store.draft(corpus, manifest.provenance) as draft:  # simulates a run on other hardware
        other = {"sentence_id": [7], "text": ["x"], "source": ["t"], "lang": ["en"]}
        draft.write(pl.DataFrame(other, schema_overrides={"sentence_id": pl.UInt64}))
    made, again, _ = run()
    assert made == ["doubled"]
    assert store.scan(again).collect()["text_1"].to_list() == ["x"]


def test_cache_hit_succeeds_on_a_read_only_store(run, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    run()
    monkeypatch.setattr(LocalFileSystem, "pipe_file", refuse)
    assert run()[0] == []
