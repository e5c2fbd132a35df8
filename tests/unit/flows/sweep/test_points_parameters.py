"""Parameters for workers on other machines contain no setting of this machine alone."""

from bsl.flows.recipes import recipe
from bsl.flows.run_context import run_context_of
from bsl.flows.sweep.points import Job
from bsl.tasks.stage.run_context import RunContext

JOB = Job("tiny", recipe("tiny"))


def test_pool_run_parameters_contain_only_settings_shared_by_machines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror").mkdir()
    own = {"cache": "cache", "threads": 3, "processes": 2, "cluster": "tcp://here:8786", "save_every": 7}
    site = RunContext.model_validate({"store": "store", "mirror": "mirror", "device": "cuda:1", **own})
    assert JOB.parameters(site) == {
        "recipe_name": "tiny",
        "overrides": {},
        "of_sweep": True,
        "site": {"store": str(tmp_path / "store"), "mirror": str(tmp_path / "mirror"), "device": "cuda"},
    }


def test_pool_run_parameters_contain_store_from_environment(tmp_path, monkeypatch):
    """This includes a store that the sender's environment sets."""
    monkeypatch.setenv("BSL_STORE", "s3://bucket/store")
    monkeypatch.setenv("BSL_CACHE", str(tmp_path))
    monkeypatch.setenv("BSL_CLUSTER", "tcp://here:8786")
    assert JOB.parameters(run_context_of(None))["site"] == {"store": "s3://bucket/store"}
