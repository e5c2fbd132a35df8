"""A marked secret in every parameter that takes an address: refused before anything is recorded, and never repeated."""

import math
from functools import cache

import pytest
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import preprocess_schema, validate

from bsl.flows.adaptation import adapt
from bsl.flows.cli.main import main
from bsl.flows.config import override
from bsl.flows.evaluation import evaluation
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.flows.sweep.sweep import ablation, reproduction
from bsl.runs import adapt as adapt_in_python
from bsl.runs import evaluate as evaluate_in_python
from bsl.runs import run as run_in_python
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.paths import listed
from bsl.tasks.evaluation.kinds import names_of
from tests.every import every

SECRET = "planted9"
ADDRESSES = (
    f"http://user:{SECRET}@127.0.0.1:9/a.csv",
    f"https://127.0.0.1:9/a.csv?auth={SECRET}",
    f"https://127.0.0.1:9/a.csv#{SECRET}",
    f"tcp://127.0.0.1:9?token={SECRET}",
)
COMMANDS = (
    "run tiny --store {}",
    "run tiny --cluster {}",
    "run tiny --set encoder.model={}",
    'run tiny --set evaluation.sets=["labels:{}"]',
    'run tiny --set ingest.sources=[{{"path":"{}"}}]',
    "run {}",
    "adapt {}",
    "adapt own.txt --labels={}",
    "adapt own.txt --suite own:{}",
    "evaluate embedded:bert-mini --suite {} --json",
    "sweep tiny --over encoder.model={},embedded:bert-mini",
    "search {} own.txt question",
    "doctor tiny --mirror {}",
    "{}",
)
FLOWS = {  # flow → parameters that take addresses
    pipeline: "site.store site.mirror site.cluster overrides.encoder.model overrides.evaluation.sets.0 "
    "overrides.evaluation.dev overrides.ingest.sources.0.path overrides.ingest.own_text.labels",
    adapt: "texts.0 encoder labels config.rehearsal config.encoder.model",
    evaluation: "models.0 suite.0",
    ablation: "own.text.0 own.labels own.encoder overrides.encoder.model over.x.0 over.x.0.0 site.cluster",
    reproduction: "overrides.evaluation.sets.0",
}
PARAMETERS = [(flow, path) for flow, paths in FLOWS.items() for path in paths.split()]
NEEDED = {"recipe_name": "tiny", "texts": ["a"], "models": ["a"], "suite": ["a"], "name": "tiny"}


def placed(path, value):
    """Return nested values with one at a path; numbers are positions in lists."""
    for name in reversed(path.split(".")):
        value = [value] if name == "0" else {name: value}
    return value


@cache
def form_of(flow):
    """Return the schema by which Prefect's server checks the parameters of a deployment."""
    return dict(preprocess_schema(parameter_schema(flow.fn).model_dump()))


def parameters_of(flow, path, value):
    """Return parameters of a flow with a value at a path, and the ones that it requires."""
    given = {name: NEEDED.get(name, "BSL-BERT") for name in form_of(flow)["required"]} | placed(path, value)
    return given | ({"own": {"text": ["a"], **given["own"]}} if "own" in given else {})


@pytest.mark.parametrize("address", ADDRESSES)
def test_command_refuses_a_secret_in_any_word_and_does_not_print_it(address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        assert main([word.format(address) for word in command.split()]) == 2, command
        printed = capsys.readouterr()
        assert "contains a password, token or signature" in printed.err or command == "{}", command
        assert SECRET not in printed.out + printed.err, command
    assert not list(tmp_path.iterdir())


def test_a_question_to_search_is_text_and_is_never_refused_as_an_address(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    questions = ["https://example.org/watch?v=abc123", "is http://u:p@host/ an address?", *ADDRESSES]
    (tmp_path / "own.txt").write_text("A cat sits.\nSee https://example.org/?q=map for a map.\n")
    assert main(["search", "embedded:mini-sentence", "own.txt", *questions]) == 0
    printed = capsys.readouterr().out
    assert "https://example.org/watch?v=abc123" in printed
    assert "See https://example.org/?q=map for a map." in printed
    assert main(["search", "embedded:mini-sentence", ADDRESSES[0], questions[0]]) == 2
    assert main(["search", "embedded:mini-sentence", "own.txt", questions[0], "--store", ADDRESSES[0]]) == 2


@pytest.mark.parametrize("variable", ["BSL_STORE", "BSL_DATA_MIRROR", "BSL_CLUSTER"])
def test_command_refuses_a_secret_in_a_variable(variable, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for address in (*ADDRESSES, f"ftp://user:{SECRET}@host/store"):
        monkeypatch.setenv(variable, address)
        for call in (["run", "tiny", "--dry-run"], ["doctor", "tiny"]):
            assert main(call) == 2
            printed = capsys.readouterr()
            assert variable in printed.err
            assert SECRET not in printed.out + printed.err
    assert "FSSPEC_FTP_PASSWORD" in printed.err
    assert not any(SECRET in path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())


@every(PARAMETERS)
def test_form_and_flow_refuse_a_secret_before_a_run_is_created(flow, path):
    form = form_of(flow)
    accepted = validate(parameters_of(flow, path, "https://127.0.0.1:9/a.csv"), form, preprocess=False)
    assert not accepted, accepted
    name = path.removeprefix("overrides.").removeprefix("config.")
    for address in ADDRESSES:
        for value in (address, f"labels:{address}"):
            assert validate(parameters_of(flow, path, value), form, preprocess=False), value
        with pytest.raises(ValueError, match=f"^{name}: an address .* contains a password") as refused:
            flow(**parameters_of(flow, path, address))
        assert SECRET not in str(refused.value)


@every(
    [
        lambda address: override(recipe("tiny"), {"encoder": {"prompt": address}}),
        lambda address: run_in_python("tiny", {"encoder": {"model": address}}),
        lambda address: run_in_python("tiny", store=address),
        lambda address: run_in_python("tiny", cluster=address),
        lambda address: adapt_in_python([address]),
        lambda address: adapt_in_python(["embedded:nli-sample"], labels=address),
        lambda address: adapt_in_python(["embedded:nli-sample"], address),
        lambda address: evaluate_in_python(address),
        lambda address: evaluate_in_python(len, [f"labels:{address}"]),
        lambda address: names_of([address]),
        label_source,
        listed,
        resolve_model,
    ]
)
def test_python_refuses_a_secret(call):
    for address in ADDRESSES:
        with pytest.raises(ValueError, match="contains a password") as refused:
            call(address)
        assert SECRET not in str(refused.value)


@every(
    [
        (pipeline, "overrides.training.seed", 2**63),
        (pipeline, "overrides.training.lr", float("nan")),
        (pipeline, "overrides.published.0", 10**30),
        (pipeline, "site.threads", 2**64),
        (ablation, "seeds", 2**70),
        (ablation, "workers", 2**63),
        (ablation, "over.training.seed.0", 2**63),
        (reproduction, "margin", float("inf")),
        (reproduction, "seeds", 1001),
        (evaluation, "config.seeds", 2**63),
    ]
)
def test_flow_in_python_refuses_a_number_before_it_creates_a_run(flow, path, value):
    given = placed("over", {"training.seed": [value]}) if path.startswith("over.") else placed(path, value)
    parameters = parameters_of(flow, "x", 0) | given
    del parameters["x"]
    with pytest.raises(Exception, match=path.rpartition(".")[2] if path[-1] != "0" else "0: "):
        flow(**parameters)
    if math.isfinite(value):  # JSON has no other numbers
        assert validate(parameters, form_of(flow), preprocess=False)
