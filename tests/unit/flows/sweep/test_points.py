"""Runs of a sweep: a point's own fault leaves it without a figure, whatever else ends the sweep."""

import os
import pickle
from dataclasses import dataclass
from uuid import uuid4

import pytest
from distributed import Client
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelled, Completed, Crashed, Failed

from bsl.flows.config import override
from bsl.flows.pipeline import Run, is_fault, pipeline
from bsl.flows.recipes import recipe
from bsl.flows.run_context import run_context_of
from bsl.flows.sweep import points
from bsl.flows.sweep.points import Job, run_points, unless_stopped, with_runs
from bsl.models.errors import (
    EncoderError,
    InterruptedRunError,
    NonFiniteLossError,
    ResumeError,
    TrainingError,
    TranslationStoppedError,
)
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import EmbeddingsRef, ReportRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import HubError, SourceError
from bsl.tasks.evaluation.systems import System
from bsl.tasks.reporting.sweep.system import SweepSystem
from bsl.tasks.stage.cluster import ClusterError, DeadWorkersError
from bsl.tasks.stage.pool import NO_FIGURE, PoolError, UnscoredRunError, _fault
from bsl.tasks.stage.progress import announce, is_planning, listening, planning
from bsl.tasks.stage.run_context import RunContext
from tests.cluster import dask_cluster

VERSION = "BSL_TESTED_VERSION"
NAME = "momentum 0.5"
POINT = {NAME: [Job("tiny", recipe("tiny"))]}


@dataclass(frozen=True)
class Counting:
    """A run that makes a system of which one artifact is known, or raises an error."""

    label: str
    seed: int
    error: Exception | None = None

    def run(self, site):
        if self.error is not None:
            raise self.error
        announce(f"{self.label} {self.seed} runs")
        return Run(ReportRef(key="0" * 64), System(self.label, "", EmbeddingsRef(key=f"{self.seed:064x}")), ())


@pytest.fixture
def told():
    """Return the messages to the terminal."""
    lines = []
    with listening(lambda event, value: lines.append(value) if event == "tells" else None):
        yield lines


def reported(folder, verdict):
    """A run of which the report alone is there."""
    store = Store(str(folder))
    ref = ReportRef(key="0" * 64)
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        (draft.folder / "report.md").write_text("page")
        draft.note({"verdict": verdict, "reason": "the encoder unlearnt by step 3"})
    return Run(ref, System("after BSL", "", EmbeddingsRef(key="1" * 64)), ())


def test_point_with_stopped_training_becomes_a_training_error(tmp_path, monkeypatch):
    monkeypatch.setattr(points, "run", lambda *_: reported(tmp_path, "STOPPED"))
    site = RunContext(store=str(tmp_path))
    (ended,) = run_points(POINT, site)[NAME]
    fault = unless_stopped(NAME, ended, site)
    assert isinstance(fault, TrainingError)
    assert str(fault) == "the encoder unlearnt by step 3"


def test_finished_point_is_announced_except_during_planning(tmp_path, monkeypatch, told):
    there = reported(tmp_path, "BETTER")
    monkeypatch.setattr(points, "run", lambda *_: there)
    site = RunContext(store=str(tmp_path))
    with planning():
        run_points(POINT, site)
    (ended,) = run_points(POINT, site)[NAME]
    assert ended is there
    assert told == ["momentum 0.5, seed 0: done"]
    assert unless_stopped(NAME, ended, site) is ended


FAULTS = [
    TrainingError("rank is gone"),
    NonFiniteLossError(1, "loss", float("nan"), [0], None, "lower the rate"),
    UnscoredRunError("run a: loss is not finite"),
    DeadWorkersError("its worker process died 4 times"),
    ResumeError("another run's"),
]
OTHERS = [
    InterruptedRunError(3, 10, None),
    TranslationStoppedError("told to stop"),
    PoolError("no such deployment"),
    ClusterError("no scheduler"),
    SourceError("nobody has it"),
    KeyError("a bug"),
]


@pytest.mark.parametrize("error", [*FAULTS, *OTHERS], ids=lambda error: type(error).__name__)
def test_fault_of_a_point_is_its_outcome_and_other_errors_end_the_sweep(error, caplog):
    jobs = {NAME: [Counting(NAME, 0, error)]}
    if error in FAULTS:
        assert run_points(jobs, RunContext()) == {NAME: [error]}
        assert f"momentum 0.5, seed 0 has no figure: {error}" in caplog.text
        assert type(pickle.loads(pickle.dumps(error))) is type(error)  # it comes back from another process
    else:
        with pytest.raises(type(error)):
            run_points(jobs, RunContext())
        assert f"momentum 0.5, seed 0: {error}" in caplog.text


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (Completed(), None),
        (Completed(name=NO_FIGURE, message="rank is gone"), UnscoredRunError),
        (Failed(message="Flow run encountered an exception: TrainingError: rank is gone"), PoolError),
        (Crashed(message="killed"), PoolError),
        (Cancelled(), PoolError),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_fault_of_a_pool_run_comes_from_its_state(state, kind):
    fault = _fault(FlowRun(flow_id=uuid4(), name="a", state=state))
    assert fault is None if kind is None else isinstance(fault, kind)
    assert is_fault(fault) is (kind is UnscoredRunError)


def test_unplannable_points_are_not_sent_to_the_pool(tmp_path, caplog):
    site = RunContext(store=str(tmp_path / "store"), device="cpu", pool=True)
    bad = Counting("cls", 0, EncoderError("a static table has no dropout"))
    unplannable = {"cls": [bad], "again cls": [bad]}
    with planning():
        outcomes = run_points(unplannable | POINT, site)
    assert [type(outcome) for (outcome,) in outcomes.values()] == [EncoderError, EncoderError, Run]
    assert not caplog.records
    assert all(isinstance(outcome, EncoderError) for (outcome,) in run_points(unplannable, site).values())
    assert "again cls, seed 0 has no figure: " in caplog.text


def test_run_on_a_pool_makes_the_report_that_the_sweep_expects(tmp_path):
    """Regression: only the worker changed the title of a point on other text, so the sweep found no report."""
    (tmp_path / "own.txt").write_text("It has rained for days.\n")
    job = Job("tiny", override(recipe("tiny"), {"ingest": {"sources": [{"path": str(tmp_path / "own.txt")}]}}))
    site = RunContext(store=str(tmp_path / "store"), device="cpu")
    with planning():
        sent = job.parameters(site)
        assert job.run(site).report == pipeline.fn(**sent | {"site": site})


def test_run_points_orders_by_seed_and_survives_failures(tmp_path, told):
    gone = TrainingError("rank is gone")
    jobs = {"a": [Counting("a", seed, gone if seed == 1 else None) for seed in range(3)], "b": [Counting("b", 0)]}
    ended = run_points(jobs, RunContext(store=str(tmp_path)))
    assert told == ["a 0 runs", "a, seed 0: done", "b 0 runs", "b, seed 0: done", "a 2 runs", "a, seed 2: done"]
    system = with_runs(SweepSystem(label="A", line="one"), ended["a"])
    assert (system.label, system.line) == ("A", "one")
    assert [int(ref.key, 16) for ref in system.embeddings] == [0, 2]
    assert system.faults == ("seed 1: rank is gone",)
    assert with_runs(SweepSystem(label="A"), [gone]).embeddings == ()


@dataclass(frozen=True)
class Versioned:
    """A run whose report's key has the version of a stage on its machine."""

    seed: int

    def run(self, site):
        if os.environ.get(VERSION) == "0":
            raise HubError("own.txt: no such file", "correct the path")
        ref = ReportRef(key=f"{int(os.environ.get(VERSION, '2')):032}{self.seed:032}")
        if not is_planning():
            with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
                (draft.folder / "report.md").write_text("page")
        return Run(ref, System("", "", ref), ())


def set_version(version):
    os.environ[VERSION] = version


def test_point_of_a_cluster_with_another_version_or_other_files_ends_the_sweep(tmp_path):
    """Regression: its figures were compared with those of this version, without a word."""
    jobs = {NAME: [Versioned(0), Versioned(1)]}
    with dask_cluster(1) as running, Client(running, set_as_default=False) as client:
        site = RunContext(store=str(tmp_path), cluster=running.scheduler_address)
        assert [outcome.report.key[-1] for outcome in run_points(jobs, site)[NAME]] == ["0", "1"]
        client.run(set_version, "1")
        with pytest.raises(ClusterError, match=r"a worker made .* \(expected .*\)\. Use the same version"):
            run_points(jobs, site)
        client.run(set_version, "0")  # a worker without the files of this machine
        with pytest.raises(HubError, match=r"a worker of cluster tcp://.*: own\.txt: no such file\. Correct the path"):
            run_points(jobs, site)


def test_pool_run_parameters_contain_only_settings_shared_by_machines(tmp_path, monkeypatch):
    (job,) = POINT[NAME]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror").mkdir()
    own = {"cache": "cache", "threads": 3, "processes": 2, "cluster": "tcp://here:8786", "save_every": 7}
    site = RunContext.model_validate({"store": "store", "mirror": "mirror", "device": "cuda:1", **own})
    assert job.parameters(site) == {
        "recipe_name": "tiny",
        "overrides": {},
        "of_sweep": True,
        "site": {"store": str(tmp_path / "store"), "mirror": str(tmp_path / "mirror"), "device": "cuda"},
    }
    for variable, value in (("STORE", "s3://bucket/store"), ("CACHE", "cache"), ("CLUSTER", "tcp://here:8786")):
        monkeypatch.setenv(f"BSL_{variable}", value)
    assert job.parameters(run_context_of(None))["site"] == {"store": "s3://bucket/store"}
