"""Scores are exported as MTEB result files, Markdown and LaTeX."""

import errno
import json
import os
import unicodedata
from pathlib import Path

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.storage.artifacts.refs import ReportRef, ScoresRef
from bsl.storage.artifacts.store import Store
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import ArtifactMissingError, StoreWriteError
from bsl.tasks.reporting.export import FORMS, export_figures, folder_names, task_results
from tests.corpora import publish, score_row
from tests.every import every


def row(dataset, metric, value, model="org/mine", **changed):
    signature = f"set:{dataset}/test|metric:{metric}"
    return score_row(dataset, value, model=model, metric=metric, signature=signature, **changed)


ROWS = [
    row("stsb", "spearman", 0.8203),
    row("stsb", "pearson", 0.8274),
    row("stsb", "spearman", 0.1, split="dev"),
    row("sts12", "spearman", 0.7, protocol="mean"),
    *(row(f"sts17-{track}", metric, 0.5) for track in ("en-en", "es-en") for metric in ("spearman", "pearson")),
    row("sickr", "spearman", 0.7),
    row("sts12-tok", "spearman", 0.7),
]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    store = Store(str(tmp_path / "store"))
    publish(store, ScoresRef(key=f"{7:064x}"), pl.DataFrame(ROWS))
    return store


def test_mteb_task_names_exclude_sick_and_tokenised_sets():
    declared = {name: dataset.mteb for name, dataset in DATASETS.items() if dataset.mteb}
    years = {f"sts{year}": f"STS{year}" for year in range(12, 17)} | {"stsb": "STSBenchmark"}
    assert {name: task for name, task in declared.items() if not name.startswith("sts17-")} == years
    assert {task for name, task in declared.items() if name not in years} == {"STS17"}


def test_task_results_have_the_mteb_result_layout():
    results = task_results(pl.DataFrame(ROWS))
    assert sorted(results) == ["STS17", "STSBenchmark"]
    values = {"main_score": 0.8203, "spearman": 0.8203, "pearson": 0.8274}
    cosines = {"cosine_spearman": 0.8203, "cosine_pearson": 0.8274, "signature": "set:stsb/test|metric:spearman"}
    assert results["STSBenchmark"] == {
        "dataset_revision": DATASETS["stsb"].revision,
        **dict.fromkeys(("evaluation_time", "kg_co2_emissions", "mteb_version")),
        "scores": {"test": [{"hf_subset": "default", "languages": ["eng-Latn"], **values, **cosines}]},
        "task_name": "STSBenchmark",
    }
    tracks = [(entry["hf_subset"], entry["languages"]) for entry in results["STS17"]["scores"]["test"]]
    assert tracks == [("en-en", ["eng-Latn"]), ("es-en", ["spa-Latn", "eng-Latn"])]


OWN = [row("labels:rows.csv", "accuracy", 0.5, split="all")]
TAUGHT = "343 of the 700 rows trained checkpoint/1."
EXPORTS = {
    "latex": (ROWS, "table.tex", "latex", "org/mine & spearman, all & -- &"),
    "markdown": (ROWS, "table.md", "markdown", "| org/mine | spearman, all |"),
    "dev split": (ROWS, "table.md", "markdown", "| stsb dev: spearman, all | 10.00 [0.0, 100.0] |"),
    "own labels": (OWN, "own.tex", "latex", "labels:rows.csv all: accuracy, all & 50.00"),
    "no task of MTEB": (OWN, "own", "mteb", "no set is a task of MTEB (found labels:rows.csv)"),
    "archive": (OWN, "own.zip", "mteb", "Remove .zip"),
}


@pytest.mark.parametrize(("rows", "name", "form", "text"), EXPORTS.values(), ids=EXPORTS)
def test_export_command_writes_the_figures_or_says_why_not(store, tmp_path, capsys, rows, name, form, text):
    publish(store, ScoresRef(key=f"{8 << 252:064x}"), pl.DataFrame(rows), figures={"notes": [TAUGHT]})
    command, target = ["artifacts", "export", "scores/8", str(tmp_path / name), "--as", form], tmp_path / name
    if form == "mteb":
        assert main(command) == 1
        assert text in capsys.readouterr().err
        assert not target.exists()
        return
    assert main(command) == 0
    assert text in target.read_text()
    assert TAUGHT in target.read_text()
    assert main(command) == 1
    assert "already exists" in capsys.readouterr().err


LONG = "x" * 200
CLASHES = {
    "separator": ["org/mine", "org__mine"],
    "dots": [".", "..", "system", "...mine", "mine"],
    "long": [f"{LONG}1", f"{LONG}2", LONG],
    "letters outside ASCII": ["日" * 200, "日" * 201],
    "case": ["Mine", "mine"],
    "accents": ["caf\u00e9", "cafe\u0301"],
}


@every(CLASHES.values())
def test_folders_of_systems_have_different_names(systems):
    names = [unicodedata.normalize("NFC", name).casefold() for name in folder_names(systems).values()]
    assert len({*names}) == len(systems)
    assert max(len(name.encode()) for name in names) <= 255
    assert not {".", ".."} & {*names}
    distinct = {"org/mine": "org__mine", "other": "other", ".hidden": "hidden"}
    assert folder_names(distinct) == distinct


def test_mteb_export_has_a_folder_for_each_system(tmp_path):
    store, systems = Store(str(tmp_path / "store")), {"org/mine": 0.1, "org__mine": 0.2}
    rows = [row("stsb", name, value, model=one) for one, value in systems.items() for name in ("spearman", "pearson")]
    ref = publish(store, ScoresRef(key=f"{7:064x}"), pl.DataFrame(rows))
    target, names = export_figures(store, ref, tmp_path / "mteb", "mteb"), folder_names(systems)
    assert sorted(path.name for path in target.iterdir()) == sorted(names.values())
    for system, value in systems.items():
        result = json.loads((target / names[system] / "STSBenchmark.json").read_text())
        assert result["scores"]["test"][0]["main_score"] == value


def test_artifact_without_scores_says_how_to_export_it(store, tmp_path):
    ref = publish(store, ReportRef(key=f"{7:064x}"), page="A report of an adaptation.")
    with pytest.raises(ArtifactMissingError, match=r"no table of scores for --as latex .* Without --as the artifact"):
        export_figures(store, ref, tmp_path / "figures.tex", "latex")


def full_disk(path, text, **options):
    path.write_bytes(text[:9].encode())
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.parametrize("form", FORMS)
def test_failed_export_leaves_nothing_and_can_be_repeated(store, tmp_path, monkeypatch, form):
    ref, target = store.refs("scores")[0], tmp_path / "exports" / "figures"
    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", full_disk)
        with pytest.raises(StoreWriteError, match="the disk is full"):
            export_figures(store, ref, target, form)
    assert list(target.parent.iterdir()) == []
    assert export_figures(store, ref, target, form).exists()
    assert [path.name for path in target.parent.iterdir()] == ["figures"]
