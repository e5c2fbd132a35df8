"""What goes to other machines names nothing that is this machine's own."""

import signal
import threading
import time

import pytest

from flows.points import _side_by_side
from flows.pool import Job, asked_of
from flows.recipes import recipe
from flows.site import site_of
from tasks.site import Site

JOB = Job("tiny", recipe("tiny"))


def test_a_point_on_a_pool_takes_along_what_all_machines_share(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror").mkdir()
    own = {"cache": "cache", "threads": 3, "processes": 2, "nodes": 2, "rendezvous": "here:29500", "save_every": 7}
    site = Site.model_validate({"store": "store", "mirror": "mirror", "device": "cuda:1", "runner": "pool", **own})
    assert asked_of(JOB, site) == {
        "recipe_name": "tiny",
        "overrides": {},
        "site": {"store": str(tmp_path / "store"), "mirror": str(tmp_path / "mirror"), "device": "cuda"},
    }


def test_workers_are_told_the_store_that_the_sender_looks_into(tmp_path, monkeypatch):
    """Also where a person left it to the environment of the sender."""
    monkeypatch.setenv("BSL_STORE", "s3://bucket/store")
    monkeypatch.setenv("BSL_CACHE", str(tmp_path))
    monkeypatch.setenv("BSL_RUNNER", "pool")
    assert asked_of(JOB, site_of(None))["site"] == {"store": "s3://bucket/store"}


def test_an_interrupt_reaches_lanes_that_wait_for_a_pool():
    """Signals come to the main thread alone; points that were not begun are not begun."""
    off, begun = threading.Event(), []

    def wait(job):
        begun.append(job)
        off.wait(60)

    def interrupt(*_):
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _side_by_side([1, 2, 3], wait, 2, off)
    signal.signal(signal.SIGALRM, former)
    assert time.monotonic() - started < 30
    assert sorted(begun) == [1, 2]
