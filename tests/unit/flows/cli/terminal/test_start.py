"""A verb's flow is planned before it runs, so that its stages are numbered; planning starts and sends nothing."""

import pytest
from prefect import flow

from bsl.flows.adaptation import adapt
from bsl.flows.cli.terminal.start import planned_stages
from bsl.flows.sweep.sweep import ablation
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.errors import SourceError
from bsl.tasks.stage.cached import stage
from bsl.tasks.stage.run_context import RunContext


@stage(ref=CorpusRef, version=1)
def foreseen_first(work, number: int):
    raise AssertionError("a plan computes nothing")


@stage(ref=CorpusRef, version=1)
def foreseen_second(work, first: CorpusRef, rows: int):
    raise AssertionError("a plan computes nothing")


@flow
def straight(site: RunContext, number: int) -> CorpusRef:
    return foreseen_second(site, foreseen_first(site, number), rows=2)


@flow
def winding(site: RunContext) -> CorpusRef:
    first = foreseen_first(site, 1)
    return foreseen_second(site, first, site.open_store().manifest(first).rows)


def stages(plan):
    return [step.stage for step in plan.stages]


def test_planned_stages_lists_stages_of_the_flow_body(site):
    assert stages(planned_stages(straight, {"site": site, "number": "3"})) == ["foreseen_first", "foreseen_second"]


def test_planned_stages_is_none_for_unplannable_flow(site):
    assert planned_stages(winding, {"site": site}) is None
    assert planned_stages(straight, {"site": site, "number": "three"}) is None


def test_planning_a_sweep_with_missing_model_raises_source_error(site):
    asked = {"name": "tiny", "over": {"encoder.model": ["embedded:bert-mini", "/nonexistent"]}, "seeds": 1}
    with pytest.raises(SourceError, match="/nonexistent"):
        planned_stages(ablation, {**asked, "site": site})


def test_sweep_plan_is_equal_locally_and_on_workers(site):
    asked = {"name": "tiny", "over": {"training.max_steps": [10, 20]}, "seeds": 1, "workers": 2}
    here = planned_stages(ablation, {**asked, "site": site})
    assert stages(here).count("train") == 2
    elsewhere = planned_stages(ablation, {**asked, "site": site.model_copy(update={"cluster": "tcp://nowhere:8786"})})
    assert {step.ref.path for step in elsewhere.stages} == {step.ref.path for step in here.stages}
    on_pool = planned_stages(ablation, {**asked, "site": site.model_copy(update={"pool": True})})
    assert {step.ref.path for step in on_pool.stages} == {step.ref.path for step in here.stages}


def test_adapt_is_planned_for_unread_text_unlike_the_own_study(site, tmp_path):
    text = tmp_path / "own.txt"
    text.write_text("\n".join(f"The dog of number {number} runs across a field of snow." for number in range(40)))
    planned = stages(planned_stages(adapt, {"texts": [str(text)], "site": site}))
    assert planned[0] == "read_passages"
    assert planned[-1] == "adaptation"
    asked = {"name": "own", "own": {"text": [str(text)]}, "site": site}
    assert planned_stages(ablation, asked) is None  # the questions about the text decide the points
