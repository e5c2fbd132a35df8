"""prefect.yaml is short, and its deployments name existing flows, parameters and settings."""

from importlib import import_module
from inspect import signature

import yaml

from bsl.flows.prefect_server.server import RUN_SETTINGS, TAG
from bsl.flows.recipes import RECIPES
from tests.every import every
from tests.servers import ROOT

TEXT = (ROOT / "prefect.yaml").read_text(encoding="utf-8")
DEPLOYMENTS = yaml.safe_load(TEXT)["deployments"]
SLEEPING = {"GOMP_SPINCOUNT": "2000"}  # a run's process belongs to it alone: bsl.tasks.stage.device.let_threads_sleep
RUNS = [each for each in DEPLOYMENTS if each["entrypoint"] == "bsl.flows.pipeline.pipeline"]


def flow_of(deployment):
    module, _, name = deployment["entrypoint"].rpartition(".")
    return getattr(import_module(module), name)


def name_of(deployment):
    return f"{flow_of(deployment).name}/{deployment['name']}"


def test_common_recipes_and_flows_are_deployed() -> None:
    names = [name_of(each) for each in DEPLOYMENTS]
    assert len(set(names)) == len(names)
    runs = {"tiny", "nli", "nli-roberta", "sbert", "multilingual", "multilingual-sup", "afs", "any"}
    flows = {"adapt", "evaluate", "sweep", "reproduce"}
    assert {f"bsl-pipeline/{name}" for name in runs} | {f"bsl-{flow}/any" for flow in flows} <= set(names)


@every(DEPLOYMENTS)
def test_deployment_parameters_match_the_flow_signature(deployment) -> None:
    parameters, taken = deployment["parameters"], signature(flow_of(deployment).fn).parameters
    assert set(parameters) <= set(taken)
    missing = {name for name, taken in taken.items() if taken.default is taken.empty} - set(parameters)
    assert not missing or deployment["name"] == "any", "a person chooses in the form of `any` alone"


@every(DEPLOYMENTS)
def test_deployment_has_tag_pool_and_heartbeat_settings(deployment) -> None:
    assert deployment["tags"][0] == TAG
    assert deployment["work_pool"]["name"] == "gpu"
    assert deployment["work_pool"]["job_variables"]["env"] == RUN_SETTINGS | SLEEPING


def test_recipe_deployment_is_named_after_its_recipe() -> None:
    named = {each["name"]: each["parameters"]["recipe_name"] for each in RUNS if each["name"] != "any"}
    assert {name: name for name in named} == named
    assert set(named) <= set(RECIPES)


def test_any_form_lists_recipes_and_describes_parameters() -> None:
    (form,) = [flow_of(each).parameters for each in RUNS if each["name"] == "any"]
    assert form.properties["recipe_name"]["enum"] == list(RECIPES)
    assert list(form.properties) == ["recipe_name", "overrides", "site", "of_sweep"]
    assert all(field["description"] for field in form.properties.values())
    first = list(form.definitions["PipelineConfigOverrides"]["properties"])[:3]
    assert first == ["ingest", "encoder", "training"]
