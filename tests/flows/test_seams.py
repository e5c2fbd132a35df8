"""A new system is one file and one line: a toy of each kind runs through a whole pipeline in a copy of the packages."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from bsl.storage.artifacts.store import Store
from bsl.storage.assets.embedded import embedded_path

pytestmark = pytest.mark.slow  # copies of the packages run whole commands
ROOT = Path(__file__).parents[2]
TOYS = ROOT / "tests" / "toys"  # each file at its path in the packages
ROOMS = ("flows", "tasks", "models", "storage")
TOY_VIEW = '''

class ToyView(ViewMethod):
    """The words of the sentence in reverse."""

    name: Literal["toy"] = "toy"
'''
TOY_STAGE = '''

@stage(ref=ViewsRef, version=1)
def toy_view(context: StageContext, corpus: CorpusRef, view: ToyView) -> None:
    """Each English sentence backwards."""
    rewrite_corpus(context, corpus, view.name, "en", 0, backwards)
'''
TOY_TRANSFORM = '''

class ToyTransformConfig(TransformSettings):
    """Vectors less the corpus's mean."""

    transform = "toy:ToyTransform"
    name: Literal["toy"] = "toy"
'''
LINES = (  # file, line of its table, the same line with the toy's line, import
    (
        "storage/readers/formats.py",
        '    "afs": FileFormat(tuple(afs.SCHEMA), _at_once(afs.read_afs)),\n',
        '    "toy": FileFormat(toy.columns, toy.read, (".toy",)),\n',
        "from bsl.storage.readers import toy\n",
    ),
    (
        "models/views/config.py",
        '    """Column of the view; sources without it have no such view."""\n',
        TOY_VIEW,
        "",
    ),
    ("models/views/config.py", "SynonymView | ", "ToyView | ", ""),
    (
        "tasks/views/methods.py",
        "    context.draft.note({**count_replacements(texts, synonyms, view)})\n",
        TOY_STAGE,
        "from bsl.models.views.config import ToyView\nfrom bsl.models.views.toy import backwards\n",
    ),
    (
        "tasks/views/methods.py",
        "            return crop(site, corpus, view)\n",
        "        case ToyView():\n            return toy_view(site, corpus, view)\n",
        "",
    ),
    (
        "models/objectives/config.py",
        "    BSLConfig\n",
        "    | ToyConfig\n",
        "from bsl.models.objectives.toy_config import ToyConfig\n",
    ),
    (
        "models/transforms/config.py",
        '    """Seed of the initial weights and of the order of vectors."""\n',
        TOY_TRANSFORM,
        "",
    ),
    ("models/transforms/config.py", "AnyTransform = WhiteningConfig", " | ToyTransformConfig", ""),
    (
        "models/evaluation/own_text.py",
        '    "crop": crop,\n',
        '    "toy": toy_question,\n',
        "from bsl.models.evaluation.toy import toy_question\n",
    ),
    (
        "tasks/evaluation/kinds.py",
        "    AfsKind(),\n",
        "    ToyKind(),\n",
        "from bsl.tasks.evaluation.toy import ToyKind\n",
    ),
    ("storage/datasets/registry.py", '    "stsb-supervised",\n', '    "toys",\n', ""),
)
SETTINGS = {
    "ingest.sources": [{"path": "pairs.toy"}],
    "augment.rewritings": ["toy"],
    "pairs": {"pairings": [{"view_1": "original", "view_2": "toy"}], "labelled": True},
    "training.objective": "toy",
    "training.batch_size": 16,
    "training.max_steps": 3,
    "training.eval_every": 3,
    "training.collapse": None,
    "transform": "toy",
    "evaluation.sets": ["embedded:stsb/test", "toys"],
    "evaluation.bootstrap.resamples": 100,
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Copy the packages and add the toys."""
    house = tmp_path_factory.mktemp("house")
    for room in ROOMS:
        # With compiled modules, which are valid as long as the files keep their times, but not those being written
        shutil.copytree(ROOT / room, house / room, ignore=shutil.ignore_patterns("*.pyc.*", "assets"))
    shutil.copytree(ROOT / "bsl", house / "bsl", symlinks=True, ignore=shutil.ignore_patterns("*.pyc.*"))
    (house / "storage" / "assets").symlink_to(ROOT / "storage" / "assets")
    shutil.copytree(TOYS, house, dirs_exist_ok=True)
    for name, line, toy, imported in LINES:
        path = house / name
        text = path.read_text()
        assert text.count(line) == 1, f"{name} has no line {line!r}"
        place = re.search(r"(?m)^from (?!__future__)", text).start()
        path.write_text((text[:place] + imported + text[place:]).replace(line, line + toy))
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet").head(120)
    pairs = rows.select("premise", "hypothesis", pl.col("label").cast(pl.String)).rows()
    (house / "pairs.toy").write_text("".join(" ~ ".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    return house


def finished(house, environment, settings, *words):
    options = [f"--set={name}={json.dumps(value)}" for name, value in settings.items()]
    command = [sys.executable, "-m", "bsl.flows.cli.main", *words, "--store", words[0], *options]
    run = subprocess.run(
        command, cwd=house, env={**environment, "PYTHONPATH": str(house)}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return Store(str(house / words[0]))


def test_own_study_asks_the_toy_question(house, environment):
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet").head(600)
    numbered = rows.select(text="premise").with_row_index("number")
    numbered.select("text", document=pl.col("number") // 4).write_csv(house / "own.csv")
    settings = {"training.max_steps": 2, "evaluation.bootstrap.resamples": 200}
    store = finished(house, environment, settings, "sweep", "own", "--text", "own.csv", "--over", "variant=TSDAE")
    (ref,) = store.refs("sweep")
    table = store.scan(ref).collect()
    assert set(table["label"]) == {"original encoder", "TSDAE"}
    assert {"your text toy", "your text crop"} <= set(table["dataset"])


def test_toy_of_each_kind_is_part_of_the_run_and_its_report(house, environment, encoder):
    store = finished(house, environment, {**SETTINGS, "encoder": encoder}, "run", "tiny-entail")
    (report,), (checkpoint,), (pairs,) = (store.refs(kind) for kind in ("report", "checkpoint", "pairs"))
    assert store.scan(pairs).collect()["label"].null_count() == 0  # read from the toy format
    assert any("toy" in store.scan(ref).collect()["method"].unique() for ref in store.refs("views"))
    assert len(store.scan(checkpoint, "training_log").collect()["loss"].drop_nulls()) == 3
    assert store.manifest(checkpoint).provenance.config["config"]["objective"]["name"] == "toy"
    page = (store.fetch(report) / "report.md").read_text()
    scores = store.scan(report, "scores").collect()
    systems = {"Unigram TF-IDF", "before the toy (mean)", "after the toy"}
    systems |= {f"{system} + toy (corpus)" for system in systems if system != "Unigram TF-IDF"}
    assert set(scores.filter(dataset="toy")["model"]) == systems
    assert set(scores.filter(dataset="stsb")["model"]) == systems
    assert "| toy test: margin, toy |" in page
    assert "| toy |" in page.partition("Sentences and their views:")[2]
    assert "Nobody, 2026. A toy." in (store.fetch(report) / "model-card.md").read_text()
