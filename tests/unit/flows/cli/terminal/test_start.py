"""A flow is planned before it runs, which starts and sends nothing; a failed one says whether to run it again."""

import httpx
import pytest
from prefect import flow

from bsl.flows.adaptation import adapt
from bsl.flows.cli.terminal.start import failed, planned_stages
from bsl.flows.sweep.sweep import ablation
from bsl.models.errors import ModelError
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.errors import HubSilentError, SourceError, StoreReadError
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


def test_planned_stages_are_those_of_the_body_and_none_for_an_unplannable_flow(site):
    assert stages(planned_stages(straight, {"site": site, "number": "3"})) == ["foreseen_first", "foreseen_second"]
    assert planned_stages(straight, {"site": site, "number": "three"}) is None
    assert planned_stages(winding, {"site": site}) is None


def test_planning_a_sweep_with_missing_model_raises_source_error(site):
    asked = {"name": "tiny", "over": {"encoder.model": ["embedded:bert-mini", "/nonexistent"]}, "seeds": 1}
    with pytest.raises(SourceError, match="/nonexistent"):
        planned_stages(ablation, {**asked, "site": site})


def test_sweep_plan_is_equal_locally_and_on_workers(site):
    asked = {"name": "tiny", "over": {"training.max_steps": [10, 20]}, "seeds": 1, "workers": 2}
    here = planned_stages(ablation, {**asked, "site": site})
    assert stages(here).count("train") == 2
    for other, workers in (({"cluster": "tcp://nowhere:8786"}, None), ({"pool": True}, 2)):
        elsewhere = planned_stages(ablation, {**asked, "workers": workers, "site": site.model_copy(update=other)})
        assert {step.ref.path for step in elsewhere.stages} == {step.ref.path for step in here.stages}


def test_adapt_is_planned_for_unread_text_unlike_the_own_study(site, tmp_path):
    text = tmp_path / "own.txt"
    text.write_text("\n".join(f"The dog of number {number} runs across a field of snow." for number in range(40)))
    planned = stages(planned_stages(adapt, {"texts": [str(text)], "site": site}))
    assert planned[0] == "read_passages"
    assert planned[-1] == "adaptation"
    asked = {"name": "own", "own": {"text": [str(text)]}, "site": site}
    assert planned_stages(ablation, asked) is None  # the questions about the text decide the points


RESUME = "Finished stages are cached; run the command again to resume.\n"
ANSWER = httpx.Response(500, request=httpx.Request("POST", "http://server/api/artifacts/"))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SourceError("no source"), "bsl: no source\nFinished stages are cached.\n"),
        (HubSilentError("no answer", "wait"), f"bsl: no answer. Wait.\n{RESUME}"),
        (StoreReadError("cut off"), f"bsl: cut off\n{RESUME}"),
        (ModelError("no model"), "bsl: no model\nFinished stages are cached.\n"),
        (KeyError("x"), "bsl: KeyError: 'x'\nFinished stages are cached.\nAdd --debug for the traceback.\n"),
        (
            httpx.HTTPStatusError("error '500'\nFor more, see", request=ANSWER.request, response=ANSWER),
            f"bsl: the Prefect server failed: error '500'\n{RESUME}",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_failed_prints_the_error_and_whether_to_run_again(capsys, error, told):
    assert failed(error) == 1
    assert capsys.readouterr().err == told
