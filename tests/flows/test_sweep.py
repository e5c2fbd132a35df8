"""A sweep: points share what they can, and one more value costs itself alone; a stopped point has no figure."""

import json

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.flows.sweep.sweep import ablation, reproduction
from bsl.models.errors import EvaluationError, TrainingError
from bsl.models.evaluation.signature import parse_signature
from bsl.storage.artifacts.lookup import find

pytestmark = pytest.mark.usefixtures("without_charts")

# Outside of Prefect, whose server's work would take as long; one sweep and one reproduction run in it.
sweep = ablation.fn
MOMENTUM = "training.objective.momentum"
SIGNED = [
    "set", "metric", "protocol", "by", "data", "vectors", "pool", "len", "special", "norm", "case", "dtype", "prompt",
    "torch", "transformers", "bsl",
]  # fmt: skip


@pytest.fixture(scope="module")
def quick(alone):
    training = {**alone["training"], "precision": "fp32"}
    return {**alone, "training": training, "evaluation": {**alone["evaluation"], "dev": None}}


@pytest.fixture(scope="module")
def swept(site, quick):
    return sweep("tiny", {MOMENTUM: [0.5, 1.0]}, 2, quick, site=site)


@pytest.fixture(scope="module")
def half(quick):
    """Return overrides that are the sweep's first point."""
    return {**quick, "training": {**quick["training"], "objective": {"momentum": 0.5}}}


def test_sweep_reports_mean_and_difference_with_interval_per_point(store, swept):
    kinds = [ref.kind for ref in store.refs()]
    assert [kinds.count(kind) for kind in ("corpus", "views", "pairs", "checkpoint")] == [1, 1, 1, 4]
    first, second = store.scan(swept).collect().to_dicts()
    assert [first["label"], second["label"]] == ["momentum 0.5", "momentum 1.0"]
    assert [first["seeds"], second["seeds"]] == [2, 2]
    assert first["difference"] is None
    assert second["difference_low"] <= second["difference"] <= second["difference_high"]
    assert second["mean"] - first["mean"] == pytest.approx(second["difference"])
    assert (store.fetch(swept) / "setting.svg").read_text().startswith("<svg ")


def test_added_sweep_value_trains_only_the_new_points(site, store, swept, quick):
    before = {ref.key for ref in store.refs("checkpoint")}
    more = sweep("tiny", {MOMENTUM: [0.5, 1.0, 0.9]}, 2, quick, site=site)
    assert len({ref.key for ref in store.refs("checkpoint")} - before) == 2
    assert store.scan(more).collect()["mean"][:2].to_list() == store.scan(swept).collect()["mean"].to_list()


def test_recipe_sweep_compares_each_recipe_with_each_reference(site, store, swept, half):
    """The trained one is a point of the first sweep, so nothing is trained; what draws nothing is run once."""
    before = store.refs("checkpoint")
    names = ["tiny-avg", "tiny"]
    study = sweep("tiny-avg", {"recipe": names}, 2, half, against=names, site=site)
    assert store.refs("checkpoint") == before
    rows = store.scan(study).collect().rows(named=True)
    expected = [(reference, *point) for reference in names for point in (("tiny-avg", 1), ("tiny", 2))]
    assert [(row["reference"], row["label"], row["seeds"]) for row in rows] == expected
    assert [row["difference"] is None for row in rows] == [True, False, False, True]
    assert rows[1]["difference"] == -rows[2]["difference"]
    assert rows[1]["mean"] == store.scan(swept).collect()["mean"][0]


def test_reproduction_of_tiny_is_the_mean_of_its_runs_and_not_comparable(site, store, swept, half, encoder):
    changes = {**half, "training": {**half["training"], "select": "best"}}  # as a sweep's points
    ref = reproduction("tiny", 2, changes, site, margin=0.7)
    figures = store.scan(ref).collect()
    measured = figures.filter(dataset="stsb").row(0, named=True)
    assert (measured["published"], measured["seeds"], measured["verdict"]) == (73.74, 2, "NOT COMPARABLE")
    assert measured["value"] == pytest.approx(100 * store.scan(swept).collect()["mean"][0])
    page = (store.fetch(ref) / "reproduction.md").read_text()
    assert f"another encoder: {encoder['model']}; the row's is google-bert/bert-base-uncased" in page
    assert set(figures["margin"]) == {0.7}
    fields = parse_signature(measured["signature"])
    expected = {"set": "stsb/test", "by": "cosine", "pool": "mean", "len": "24", "special": "yes", "dtype": "fp32"}
    assert expected.items() <= fields.items()
    assert list(fields) == SIGNED


@pytest.fixture(scope="module")
def harmful(alone):
    """Return overrides with a learning rate that collapses the encoder at once, and the published `select: best`."""
    training = {**alone["training"], "lr": 1.0, "warmup": 0.0, "select": "best", "eval_every": 1}
    return {**alone, "training": {**training, "collapse": {"max_dev_drop": 0.01, "patience": 1}}}


def scored(store, study):
    """Return seeds of each point, and whether it has a figure."""
    return store.scan(study).select("seeds", pl.col("mean").is_not_null()).collect().rows()


def test_stopped_point_gets_no_score_in_sweep_and_reproduction(site, store, harmful):
    training = dict(harmful["training"])
    limits, others = training.pop("collapse"), {**harmful, "training": training}
    over = {"training.collapse": [None, limits]}
    assert scored(store, sweep("tiny", over, 1, others, site=site)) == [(1, True), (0, False)]
    said = store.manifest(reproduction.fn("tiny", overrides=harmful, site=site)).figures["findings"]
    assert said[0].endswith(": NOT COMPARABLE")
    assert any(line.startswith("training was stopped: ") for line in said)
    with pytest.raises(TrainingError, match="by step 1: "):  # no point is left
        sweep("tiny", {"training.collapse": [limits]}, 1, others, site=site)


def set_options(changes):
    return [part for name, value in changes.items() for part in ("--set", f"{name}={json.dumps(value)}")]


@pytest.mark.usefixtures("named_server")
def test_stopped_training_sets_page_json_and_exit_code(site, store, harmful, capsys):
    """The training is that of the sweep above, and is in the store."""
    options = [*set_options(harmful), "--json", "--store", store.url, "--device", "cpu"]
    assert main(["reproduce", "tiny", *options]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "NOT COMPARABLE"
    assert main(["run", "tiny", *options]) == 1
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["verdict"] == "STOPPED"
    assert " by step 1: " in outcome["reason"]
    assert outcome["advice"] == "The figures are of the original encoder."
    page = (store.fetch(find(store, outcome["report"])) / "report.md").read_text()
    assert page.split("\n\n")[1].startswith("**STOPPED** ")
    figures = {row["model"]: row["value"] for row in outcome["scores"] if row["metric"] == "spearman"}
    before, after = (figure for name, figure in figures.items() if name.startswith(("before", "after")))
    assert before == after


def test_nan_loss_shows_a_dash_and_reason_in_sweep(site, store, swept, half):
    """Cosines divided by this temperature are infinite in fp32. The other point is one of the first sweep."""
    before = store.refs("checkpoint")
    study = ablation("tiny", {"training.objective.temperature": [0.05, 1e-40]}, 1, half, site=site)
    assert store.refs("checkpoint") == before
    assert scored(store, study) == [(1, True), (0, False)]
    page = (store.fetch(study) / "sweep.md").read_text()
    assert "| temperature 1e-40 | – |" in page
    assert "temperature 1e-40: seed 0: loss is nan at step 1, expected a finite number" in page
    assert list(store.manifest(study).figures["faults"]) == ["temperature 1e-40"]


@pytest.mark.parametrize(
    ("overrides", "workers", "message"),
    [
        ({"training": {"lr": 1e-4}}, None, "training.lr: the sweep varies the field"),
        ({}, 2, "--workers 2: the workers of --cluster"),
    ],
)
def test_flow_refuses_contradictions_as_the_command_does(site, overrides, workers, message):
    """Regression: a form with a field in both `over` and `overrides`, or workers beside a cluster, ignored one."""
    elsewhere = site.model_copy(update={"cluster": "tcp://scheduler:8786"})
    with pytest.raises(ValueError, match=message):
        sweep("tiny", {"training.lr": [1e-3]}, 1, overrides, workers=workers, site=elsewhere)


@pytest.mark.usefixtures("named_server")
def test_sweep_exits_with_1_if_a_run_has_no_figure(store, swept, half, capsys):
    """Regression: a script took a sweep with failed points for complete."""
    options = [*set_options(half), "--json", "--store", store.url, "--device", "cpu"]
    found = {}
    for values in ("0.05", "0.05,1e-40"):
        code = main(["sweep", "tiny", "--over", f"training.objective.temperature={values}", *options])
        found[code] = list(json.loads(capsys.readouterr().out)["faults"])
    assert found == {0: [], 1: ["temperature 1e-40"]}


def test_sweep_of_recipes_without_common_sets_raises_evaluation_error(site):
    refused = r"share no set.*isbert-mr on mr; isbert-cr on cr\)\. Set evaluation\.sets"
    with pytest.raises(EvaluationError, match=refused):
        sweep("isbert-mr", {"recipe": ["isbert-mr", "isbert-cr"]}, site=site)
