"""Runtime settings are refused by the name that the user gave; keys contain the precision of the machine."""

import json
import os
import platform
import re
import subprocess
import sys

import pytest
from pydantic import TypeAdapter

from bsl.flows.adaptation import adapt
from bsl.flows.cli.adapt import configured
from bsl.flows.cli.main import main
from bsl.flows.cli.terminal.options import Settings
from bsl.flows.cli.terminal.start import planned_stages
from bsl.flows.config import override
from bsl.flows.evaluation import evaluation
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.flows.run_context import Site, fix_precision, run_context_of
from bsl.models.runtime import precision
from bsl.models.runtime.precision import computed
from bsl.models.training.config import TrainingConfig
from bsl.runs import context_of
from bsl.storage.artifacts.refs import CorpusRef
from bsl.tasks.evaluation.config import EvaluationSettings
from bsl.tasks.stage.cached import stage
from bsl.tasks.stage.device import DeviceError, cores, device_of
from bsl.tasks.stage.run_context import RunContext, variable_of

AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
OWN = {"fp32": frozenset({"avx2"}), "bf16": frozenset({"avx2", "avx512_bf16"})}


@stage(ref=CorpusRef, version=1)
def trained_for_this_test(context, config: TrainingConfig):
    (context.draft.folder / "precision.txt").write_text(config.precision)
    context.draft.note({"precision": config.precision})


@pytest.fixture(params=OWN)
def machine(request, monkeypatch):
    """Simulate a processor without bf16 units and one with them; return its precision."""
    for name in AVX2:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(precision, "cpu_features", lambda: OWN[request.param])
    return request.param


def keys(plan):
    return {(step.stage, step.ref.key) for step in plan.stages}


def test_auto_precision_keys_equal_keys_of_the_precision_of_the_machine(site, machine, tmp_path):
    made = trained_for_this_test(site, TrainingConfig())
    assert made == trained_for_this_test(site, TrainingConfig(precision=machine))
    manifest = site.open_store().manifest(made)
    assert manifest.figures["precision"] == manifest.provenance.config["config"]["precision"] == machine
    text = tmp_path / "own.txt"
    text.write_text("\n".join(f"The dog of number {number} runs across a field of snow." for number in range(40)))
    both = {"training": {"precision": machine}, "evaluation": {"precision": machine}}
    other = {section: {"precision": "fp32" if machine == "bf16" else "bf16"} for section in both}
    for flow, asked, field in (
        (pipeline, {"recipe_name": "tiny"}, "overrides"),
        (adapt, {"texts": [str(text)]}, "config"),
    ):
        own, named, others = (
            planned_stages(flow, {**asked, field: given, "site": site}) for given in (None, both, other)
        )
        assert keys(own) >= {key for key in keys(named) if key[0] not in ("report", "adaptation")}
        assert {name for name, _ in keys(own) - keys(others)} >= {"train", "embed"}
    scored = {"models": ["embedded:bert-mini"], "suite": ["embedded:stsb/test"], "site": site}
    own, named = (
        planned_stages(evaluation, {**scored, "config": EvaluationSettings(precision=given)})
        for given in ("auto", machine)
    )
    assert {key for key in keys(own) if key[0] == "embed"} == {key for key in keys(named) if key[0] == "embed"}


def test_recipes_of_published_rows_use_fp32_and_others_that_of_the_machine(machine):
    configs = {name: recipe(name) for name in RECIPES}
    own = [config for name, config in configs.items() if name.startswith("tiny")]
    assert {part for config in own for part in config.precisions.values()} == {"auto"}
    known = [fix_precision(config, RunContext(device="cpu")) for config in own]
    assert {part for config in known for part in config.precisions.values()} == {machine}
    assert {AdaptConfig().training.precision, AdaptConfig().evaluation.precision} == {"auto"}
    printed = [config for name, config in configs.items() if not name.startswith("tiny")]
    assert len(printed) > 20
    assert {part for config in printed for part in config.precisions.values()} == {"fp32"}


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="the variables are of x86")
def test_avx2_environment_variables_resolve_auto_precision_to_fp32():
    """Runs in its own process, because libraries read the variables on import; the check needs no torch."""
    code = """
import sys
from bsl.flows.run_context import fix_precision
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.tasks.stage.run_context import RunContext
for config in (recipe("tiny"), AdaptConfig()):
    fixed = fix_precision(config, RunContext(device="cpu"))
    print(fixed.training.precision, fixed.evaluation.precision, "torch" in sys.modules)
"""
    environment = {**os.environ, **AVX2}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout == 2 * "fp32 fp32 False\n"


@pytest.mark.parametrize("given", ["fp32", "bf16"])
def test_precision_option_and_set_give_the_same_precision(given):
    tiny, both = recipe("tiny"), (f"training.precision={given}", f"evaluation.precision={given}")
    for settings in (Settings(precision=given), Settings(settings=both), Settings(settings=both, precision=given)):
        assert set(override(tiny, settings.changes(tiny.precisions)).precisions.values()) == {given}
        config = configured({}, (), None, settings)
        assert (config.training.precision, config.evaluation.precision) == (given, given)
    assert Settings(settings=("a=1",)).changes(tiny.precisions) == {"a": 1}


def test_adapt_settings_merge_config_file_options_and_set(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"training": {"lr": 1e-5, "max_steps": 7, "precision": "bf16"}, "views": "crops"}))
    settings = Settings(settings=("training.lr=3e-5",), precision="fp32")
    config = configured({"views": "both"}, ("sts",), path, settings)
    assert (config.training.lr, config.training.max_steps, config.training.precision) == (3e-5, 7, "fp32")
    assert (config.views, config.lang, config.evaluation.sets) == ("both", "en", ("sts",))


def test_embed_prints_the_computed_precision(site, machine, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("A dog runs.\nA cat sleeps.\n")
    files = [str(tmp_path / "in.txt"), str(tmp_path / "out.parquet")]
    assert main(["embed", "embedded:bert-mini", *files, "--store", site.store, "--device", "cpu"]) == 0
    assert f"precision: {machine} (" in capsys.readouterr().err
    assert computed("auto", "cpu") == machine


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("device", "gpu", r"device \(BSL_DEVICE\): unknown device 'gpu' \(expected auto, cpu, cuda"),
        ("processes", 0, r"processes \(BSL_PROCESSES\): Input should be greater than or equal to 1"),
        ("threads", "many", r"threads \(BSL_THREADS\): Input should be a valid integer.* \(found 'many'\)"),
        ("threads", "9" * 9999, r"threads \(BSL_THREADS\): Unable to parse .* \(found '9{95,} …\)"),
    ],
)
def test_invalid_runtime_value_error_names_field_and_variable(monkeypatch, field, value, told):
    with pytest.raises(ValueError, match=told):
        run_context_of({field: value})
    monkeypatch.setenv(f"BSL_{field.upper()}", str(value))
    with pytest.raises(ValueError, match=told):
        run_context_of()


def test_misspelt_variable_is_named_and_those_of_others_are_not(monkeypatch, caplog):
    others = ("BSL_STORE", "BSL_HOME", "BSL_PORT", "BSL_TOKEN", "BSL_NOTIFY_URL", "BSL_GENERATED", "STORE")
    for name in ("BSL_STOR", "BSL_MIRROR", *others):
        monkeypatch.setenv(name, "x")
    run_context_of()
    monkeypatch.setenv("ANOTHER_VARIABLE", "as Prefect sets")
    run_context_of()
    told = [record.getMessage() for record in caplog.records]
    assert [re.findall(r"BSL_\w+", line) for line in told] == [
        ["BSL_MIRROR", "BSL_DATA_MIRROR"],
        ["BSL_STOR", "BSL_STORE"],
    ]


LOG_STARTS_LATER = """
import logging
from bsl.flows.run_context import run_context_of
run_context_of()
logging.basicConfig(format="in the log: %(message)s")
run_context_of()
run_context_of()
"""


def test_misspelt_variable_is_named_in_a_log_that_starts_after_the_first_context():
    """As JSON lines do, which Prefect configures."""
    command, variables = [sys.executable, "-c", LOG_STARTS_LATER], os.environ | {"BSL_STOR": "x"}
    told = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stderr
    assert (told.count("BSL_STOR "), told.count("in the log: ")) == (2, 1)


def test_missing_device_raises_device_error():
    with pytest.raises(DeviceError, match=r"device cuda:77 .* finds \d+ devices of kind cuda\. Use --device cpu"):
        device_of(RunContext(device="cuda:77"))


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


def test_no_variable_of_another_program_is_a_setting(monkeypatch):
    for name in RunContext.model_fields:
        for variable in {name.upper(), name, f"BSL_{name.upper()}"} - {variable_of(name)}:
            monkeypatch.setenv(variable, "7")
    assert run_context_of() == RunContext()
    monkeypatch.setenv("BSL_DATA_MIRROR", "/mirror")
    assert run_context_of().mirror == "/mirror"
    assert run_context_of({"mirror": "/other"}).mirror == "/other"


def test_mirror_that_does_not_exist_is_refused_by_commands_and_warned_of_by_flows(
    tmp_path, monkeypatch, capsys, caplog
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror").mkdir()
    (tmp_path / "own.txt").write_text("One.\nTwo.\n")
    monkeypatch.setenv("BSL_DATA_MIRROR", "miror")
    for command in ("run tiny", "search embedded:mini-sentence own.txt query", "mirror hub stsb"):
        assert main(command.split()) in {1, 2}
        assert "bsl: mirror miror: no such folder (did you mean 'mirror'?). Correct" in capsys.readouterr().err, command
    with pytest.raises(ValueError, match="mirror miror: no such folder"):
        context_of({})
    assert run_context_of(None).mirror == "miror"  # on a worker, which may be about to mount it
    assert "mirror miror: no such folder" in caplog.text
    for found in ("mirror", "s3://bucket/mirror"):
        monkeypatch.setenv("BSL_DATA_MIRROR", found)
        context_of({}).check_mirror()


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
