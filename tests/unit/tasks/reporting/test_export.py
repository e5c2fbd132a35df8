"""Scores are exported as MTEB result files, Markdown and LaTeX."""

import json

import polars as pl
import pytest

from flows.cli.main import main
from storage.artifacts.manifest import Provenance
from storage.artifacts.refs import ScoresRef
from storage.artifacts.schemas import SCORES
from storage.artifacts.store import Store
from storage.datasets.registry import DATASETS
from tasks.reporting.export import task_results


def row(dataset, metric, value, **changed):
    return {
        "model": "org/mine", "dataset": dataset, "subset": "all", "split": "test", "metric": metric, "protocol": "all",
        "value": value, "n": 10, "ci_low": 0.0, "ci_high": 1.0, "seed": 0, "checkpoint": "",
        "signature": f"set:{dataset}/test|metric:{metric}", **changed,
    }  # fmt: skip


ROWS = [
    row("stsb", "spearman", 0.8203),
    row("stsb", "pearson", 0.8274),
    row("stsb", "spearman", 0.1, split="dev"),
    row("sts12", "spearman", 0.7, protocol="mean"),
    *(row(f"sts17-{track}", metric, 0.5) for track in ("en-en", "es-en") for metric in ("spearman", "pearson")),
    row("sickr", "spearman", 0.7),
    row("sts12-tok", "spearman", 0.7),
]


def test_mteb_task_names_exclude_sick_and_tokenised_sets():
    declared = {name: dataset.mteb for name, dataset in DATASETS.items() if dataset.mteb}
    assert {name: task for name, task in declared.items() if not name.startswith("sts17-")} == {
        **{f"sts{year}": f"STS{year}" for year in range(12, 17)},
        "stsb": "STSBenchmark",
    }
    assert {task for name, task in declared.items() if name.startswith("sts17-")} == {"STS17"}


def test_task_results_have_the_mteb_result_layout():
    results = task_results(pl.DataFrame(ROWS))
    assert sorted(results) == ["STS17", "STSBenchmark"]
    assert results["STSBenchmark"] == {
        "dataset_revision": DATASETS["stsb"].revision,
        "evaluation_time": None,
        "kg_co2_emissions": None,
        "mteb_version": None,
        "scores": {
            "test": [
                {
                    "hf_subset": "default",
                    "languages": ["eng-Latn"],
                    "main_score": 0.8203,
                    "spearman": 0.8203,
                    "pearson": 0.8274,
                    "cosine_spearman": 0.8203,
                    "cosine_pearson": 0.8274,
                    "signature": "set:stsb/test|metric:spearman",
                }
            ]
        },
        "task_name": "STSBenchmark",
    }
    tracks = results["STS17"]["scores"]["test"]
    assert [(entry["hf_subset"], entry["languages"]) for entry in tracks] == [
        ("en-en", ["eng-Latn"]),
        ("es-en", ["spa-Latn", "eng-Latn"]),
    ]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    store = Store(str(tmp_path / "store"))
    with store.draft(ScoresRef(key=f"{7:064x}"), Provenance(stage_version=1, config={})) as draft:
        draft.write(pl.DataFrame(ROWS).select(SCORES.names()).cast(SCORES))
    return store


def test_export_command_writes_each_format_and_refuses_to_overwrite(store, tmp_path, capsys):
    assert main(["artifacts", "export", "scores/0", str(tmp_path / "mteb"), "--as", "mteb"]) == 0
    written = json.loads((tmp_path / "mteb" / "org__mine" / "STSBenchmark.json").read_text())
    assert written["dataset_revision"] == "b0fddb56ed78048fa8b90373c8a3cfc37b684831"
    assert main(["artifacts", "export", "scores/0", str(tmp_path / "table.tex"), "--as", "latex"]) == 0
    assert "org/mine & spearman, all & -- &" in (tmp_path / "table.tex").read_text()
    assert main(["artifacts", "export", "scores/0", str(tmp_path / "table.md"), "--as", "markdown"]) == 0
    assert "| org/mine | spearman, all |" in (tmp_path / "table.md").read_text()
    assert main(["artifacts", "export", "scores/0", str(tmp_path / "table.md"), "--as", "markdown"]) == 1
    assert "already exists" in capsys.readouterr().err


def test_export_contains_the_sets_that_no_paper_has(store, tmp_path, capsys):
    """Own labels and dev splits are in no paper's table, and are no task of MTEB."""
    assert main(["artifacts", "export", "scores/0", str(tmp_path / "table.md"), "--as", "markdown"]) == 0
    assert "| stsb dev: spearman, all | 10.00 [0.0, 100.0] |" in (tmp_path / "table.md").read_text()
    with store.draft(ScoresRef(key=f"{8 << 252:064x}"), Provenance(stage_version=1, config={})) as draft:
        own = [row("labels:rows.csv", "accuracy", 0.5, split="all")]
        draft.write(pl.DataFrame(own).select(SCORES.names()).cast(SCORES))
    assert main(["artifacts", "export", "scores/8", str(tmp_path / "own.tex"), "--as", "latex"]) == 0
    assert "labels:rows.csv all: accuracy, all & 50.00" in (tmp_path / "own.tex").read_text()
    for name, message in (("own", "no set is a task of MTEB (found labels:rows.csv)"), ("own.zip", "Remove .zip")):
        assert main(["artifacts", "export", "scores/8", str(tmp_path / name), "--as", "mteb"]) == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / name).exists()
