"""Runtime settings from options and environment: wrong values are refused by the name that the user gave."""

from __future__ import annotations

import os

import pytest
from pydantic import TypeAdapter

from bsl.flows.run_context import Site, run_context_of
from bsl.tasks.stage.device import DeviceError, cores, device_of
from bsl.tasks.stage.run_context import RunContext


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("device", "gpu", r"device \(BSL_DEVICE\): unknown device 'gpu' \(expected auto, cpu, cuda"),
        ("processes", 0, r"processes \(BSL_PROCESSES\): Input should be greater than or equal to 1"),
        ("threads", "many", r"threads \(BSL_THREADS\): Input should be a valid integer"),
    ],
)
def test_invalid_runtime_value_error_names_field_and_variable(monkeypatch, field, value, told):
    with pytest.raises(ValueError, match=told):
        run_context_of({field: value})
    monkeypatch.setenv(f"BSL_{field.upper()}", str(value))
    with pytest.raises(ValueError, match=told):
        run_context_of()


def test_missing_device_raises_device_error():
    with pytest.raises(DeviceError, match=r"device cuda:77 .* finds \d+ devices of kind cuda\. Use --device cpu"):
        device_of(RunContext(device="cuda:77"))
    assert device_of(RunContext(device="cpu")) == "cpu"


@pytest.mark.parametrize(("asked", "given"), [("1", 1), ("1,2", 1), ("1000000", None), ("", None), ("0", None)])
def test_cores_respects_omp_num_threads(monkeypatch, asked, given):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    own = cores()
    assert own == len(os.sched_getaffinity(0))
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert cores() == (given or own)


def test_explicit_value_overrides_variable_and_variable_overrides_default(monkeypatch):
    monkeypatch.setenv("BSL_DATA_MIRROR", "/mirror")
    monkeypatch.setenv("BSL_KEEP_SNAPSHOTS", "5")
    monkeypatch.setenv("BSL_DEVICE", "")
    assert run_context_of(RunContext(keep_snapshots=3)) == RunContext(mirror="/mirror", keep_snapshots=3)
    assert run_context_of({"mirror": "/other", "store": None, "recipe": "tiny"}) == RunContext(
        mirror="/other", keep_snapshots=5
    )
    assert RunContext() == RunContext(mirror=None, keep_snapshots=2)  # a worker ignores the variables


def test_empty_site_form_fields_use_the_worker_environment(monkeypatch):
    monkeypatch.setenv("BSL_STORE", "s3://bucket/store")
    sent = dict.fromkeys(RunContext.model_fields) | {"device": "cpu"}  # as Prefect's form sends it
    site = run_context_of(TypeAdapter(Site).validate_python(sent))
    assert (site.store, site.device) == ("s3://bucket/store", "cpu")
    assert TypeAdapter(Site).json_schema()["properties"]["store"]["default"] is None


def test_save_minutes_can_be_none_in_python_in_the_form_and_in_the_environment(monkeypatch):
    form = TypeAdapter(Site).validate_json('{"save_minutes": null}')
    for given in (RunContext(save_minutes=None), form):
        assert run_context_of(given).save_minutes is None
    monkeypatch.setenv("BSL_SAVE_MINUTES", "2")
    assert run_context_of(RunContext(save_minutes=None)).save_minutes is None
    assert run_context_of(RunContext(threads=None)).save_minutes == 2
    monkeypatch.setenv("BSL_SAVE_MINUTES", "none")
    assert run_context_of().save_minutes is None
    assert run_context_of(run_context_of()).save_minutes is None
    monkeypatch.setenv("BSL_THREADS", "3")
    assert run_context_of(RunContext(threads=None)).threads == 3
