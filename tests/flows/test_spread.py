"""Work done by other processes leaves the bytes of one; what is sent to them names nothing of this machine."""

import json
import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import FlowRunFilter
from prefect.states import Completed, Crashed, Failed

import tasks.translate
from flows.errands import do_errand
from flows.sweep import ablation
from models.translation.config import TranslatorConfig
from models.translation.errors import TranslatorLoadError
from storage.errors import ArtifactMissingError
from tasks.hop import find_hop
from tasks.site import Site
from tasks.stage import deployed
from tasks.stage.deployed import FailedRunError, PoolError, Wanted, run_deployed
from tasks.stage.spread import Errand, ErrandError, handfuls, run_errand, spread
from tasks.translate import translate_shard
from tests.flows.test_translate import content, hop_of, identified, site_in, translate_all
from tests.tiny_marian import SENTENCES, build_tiny_marian

COUNT, SHARD_ROWS = 32, 12


@flow
def one_hop(site: Site, model: Path, shard_rows: int = SHARD_ROWS) -> dict[str, object]:
    return translate_all(site, hop_of(site, model), identified(SENTENCES[:COUNT]), shard_rows)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture(scope="module")
def here(tmp_path_factory, model):
    site = site_in(tmp_path_factory.mktemp("here"))
    one_hop(site, model)
    return site


@pytest.fixture(scope="module")
def in_small(tmp_path_factory, model):
    """The content of a store of 16 shards, of which two workers are handed two at a time at first."""
    site = site_in(tmp_path_factory.mktemp("small"))
    one_hop(site, model, 2)
    return content(site)


@pytest.mark.parametrize("runner", ["dask", "ray"])
def test_shards_of_another_process_have_the_bytes_of_one(runner, tmp_path, model, in_small):
    site = site_in(tmp_path).model_copy(update={"runner": runner, "workers": 2})
    figures = one_hop(site, model, 2)
    assert len(content(site)) == 16
    assert content(site) == in_small
    assert figures["sentences"] == COUNT


@pytest.mark.parametrize(("count", "hands"), [(0, 2), (1, 2), (16, 2), (10_000, 2), (61_036, 1000)])
def test_every_errand_is_handed_over_once_and_no_worker_waits_long_for_another(count, hands):
    left = list(range(count))
    for some in handfuls(range(count), hands):
        assert len(some) == 1 or len(some) <= min(32, len(left) / (4 * hands))
        assert list(some) == left[: len(some)]
        del left[: len(some)]
    assert left == []


def test_ten_thousand_errands_are_a_few_hundred_tasks():
    assert len(list(handfuls(range(10_000), 2))) < 350


def test_a_sweep_on_dask_has_the_figures_of_one_process(tmp_path, alone):
    strict = {"min_effective_rank": 1000, "patience": 1}  # any fall of the rank: it stops, and the others do not
    lenient = {"min_effective_rank": 1, "min_std": 0, "max_dev_drop": 2}
    over = {"training.lr": [0.1], "training.collapse": [None, strict, lenient]}
    tables = []
    for runner in ("threads", "dask"):
        site = Site(store=str(tmp_path / runner), device="cpu", threads=1, runner=runner, workers=1)
        tables.append(site.open_store().scan(ablation("tiny", over, 1, alone, site=site)).collect())
    assert tables[0].equals(tables[1])
    assert tables[0]["seeds"].to_list() == [1, 1, 0]


def test_an_errand_names_nothing_of_this_machine_and_is_done_by_any_runner(tmp_path, model, here, monkeypatch):
    sent: list[str] = []

    def by_message(site: Site, errands: list[Errand], *, together: bool) -> None:
        assert together
        sent.extend(errand.model_dump_json() for errand in errands)
        abroad = site.abroad(2).model_dump(mode="json", exclude_unset=True)
        assert set(abroad) == {"store", "device"}
        for text in sent:
            do_errand(json.loads(text), Site.model_validate(abroad))

    monkeypatch.setattr(tasks.translate, "spread", by_message)
    monkeypatch.setenv("BSL_CACHE", str(tmp_path / "elsewhere"))
    site = site_in(tmp_path).model_copy(update={"runner": "pool"})
    one_hop(site, model)
    assert len(sent) == 3
    assert not any(str(path) in text for text in sent for path in (tmp_path, model, Path.home()))
    assert (tmp_path / "elsewhere").is_dir()
    assert content(site) == content(here)


def test_a_worker_with_another_translator_refuses(tmp_path, here):
    hop = find_hop(here, TranslatorConfig(model="embedded:marian-mini-en-mul", source_lang="en", target_lang="de"))
    with pytest.raises(TranslatorLoadError, match="expected 0000 of embedded"):
        translate_shard.do(here, hop.config, "0000", "plan", "", 0, 1)


def test_a_plan_that_nobody_lends_any_more_is_said(here):
    with pytest.raises(ArtifactMissingError, match="nobody lends this any more"):
        here.open_store().borrow_rows(".staging/gone/missing.parquet", 0, 1)


@pytest.mark.parametrize("call", ["os:system", "tasks.hop:find_hop", "tasks.stage.spread:run_errand"])
def test_what_is_not_declared_is_not_called(call, here):
    with pytest.raises(ErrandError, match="is no declared errand"):
        run_errand(Errand(call=call, title="x", arguments={}), here)


def test_a_pool_without_the_deployment_says_what_to_do(here):
    nothing = Errand(call="tasks.translate:translate_shard", title="x", arguments={})

    @flow
    def sending() -> None:
        spread(here.model_copy(update={"runner": "pool"}), [nothing])

    with pytest.raises(PoolError, match="prefect --no-prompt deploy --name any"):
        sending()


def test_a_run_that_fills_its_pool_does_not_wait_for_another_of_it(prefect_server, monkeypatch):
    """Nobody would ever take that one."""
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="narrow", type="process", concurrency_limit=1))
        made = client.create_deployment(client.create_flow(do_errand), "narrow", work_pool_name="narrow")
        run = client.create_flow_run_from_deployment(made)
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(run.id))
    with pytest.raises(PoolError, match="pool narrow takes 1 runs at a time and this run is one of them"):
        run_deployed("bsl-errand/narrow", [Wanted({}, "x")])


def test_a_deployment_whose_pool_was_deleted_is_refused(prefect_server):
    """Prefect keeps it, without a pool, and takes runs of it that nobody would ever start."""
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="short", type="process"))
        made = client.create_deployment(client.create_flow(do_errand), "short", work_pool_name="short")
        client.delete_work_pool("short")
        with pytest.raises(PoolError, match="short: the deployment has no pool any more"):
            run_deployed("bsl-errand/short", [Wanted({}, "x")])
        asked = FlowRunFilter.model_validate({"deployment_id": {"any_": [made]}})
        assert client.read_flow_runs(flow_run_filter=asked) == []
        client.delete_deployment(made)


@pytest.fixture
def idle(prefect_server, monkeypatch):
    """A deployment on a pool that nobody polls; gives its name and how its runs stand."""
    monkeypatch.setattr(deployed, "_SECONDS", 0.1)
    monkeypatch.setattr(deployed, "_SECONDS_TO_BEGIN", 0.0)
    with get_client(sync_client=True) as client:
        if not any(pool.name == "idle" for pool in client.read_work_pools()):
            client.create_work_pool(WorkPoolCreate(name="idle", type="process"))
        number = client.create_deployment(client.create_flow(do_errand), "idle", work_pool_name="idle")
        asked = FlowRunFilter.model_validate({"deployment_id": {"any_": [number]}})
        yield (
            "bsl-errand/idle",
            lambda: [run.state.type.value for run in client.read_flow_runs(flow_run_filter=asked)],
        )


def test_a_pool_that_nobody_polls_is_named_and_an_interrupt_leaves_no_run_there(idle, caplog):
    name, states = idle

    def interrupt(*_):
        raise KeyboardInterrupt

    def interrupt_soon(record: logging.LogRecord) -> bool:
        if "no worker polls" in record.getMessage():
            signal.setitimer(signal.ITIMER_REAL, 0.5)  # in which it looks again, and does not warn again
        return True

    deployed.logger.addFilter(interrupt_soon)
    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_deployed(name, [Wanted({}, "x")] * 2)
    finally:
        signal.signal(signal.SIGALRM, former)
        deployed.logger.removeFilter(interrupt_soon)
    said = [line for line in caplog.messages if "no worker polls pool idle" in line]
    assert len(said) == 1
    assert said[0].startswith("2 runs wait")
    assert states() == ["CANCELLED", "CANCELLED"]


def test_a_thread_that_waits_ends_when_it_is_called_off(idle):
    name, states = idle
    off = Event()
    before = states()
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(run_deployed, name, [Wanted({}, "x")], off)
        while states() == before:
            assert not going.done()
        off.set()
        with pytest.raises(PoolError, match="called off"):
            going.result()
    assert set(states()) == {"CANCELLED"}


def test_runs_are_waited_for_together_and_one_that_failed_is_named(prefect_server, monkeypatch):
    """No worker takes them: the test ends them, as workers would, in another order than they were sent."""
    monkeypatch.setattr(deployed, "_AT_ONCE", 3)
    monkeypatch.setattr(deployed, "_SECONDS", 0.2)
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="wide", type="process"))
        client.create_deployment(client.create_flow(do_errand), "wide", work_pool_name="wide")
        wanted = [Wanted({"sent": {"title": str(number)}}, f"errand {number}") for number in range(5)]
        with ThreadPoolExecutor(1) as pool:
            for last in (Completed(), Crashed(message="killed"), Failed(message="killed")):
                going = pool.submit(run_deployed, "bsl-errand/wide", wanted)
                seen: dict[str, str] = {}
                while len(seen) < len(wanted):
                    asked = FlowRunFilter.model_validate({"state": {"type": {"any_": ["SCHEDULED"]}}})
                    runs = [run for run in client.read_flow_runs(flow_run_filter=asked) if run.work_pool_name == "wide"]
                    assert len(runs) <= 3
                    for run in sorted(runs, key=lambda run: str(run.id), reverse=True):
                        seen[run.parameters["sent"]["title"]] = run.name
                        end = last if len(seen) == len(wanted) else Completed()
                        client.set_flow_run_state(run.id, end, force=True)
                if last.is_completed():
                    assert going.result() == [seen[str(number)] for number in range(5)]
                else:
                    said = rf"errand \d: run .* ended as {last.name}, expected Completed: killed"
                    with pytest.raises(PoolError, match=said) as ended:
                        going.result()
                    assert isinstance(ended.value, FailedRunError) == last.is_failed()  # of its own
