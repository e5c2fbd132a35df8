"""Smoke test of benchmarks/: all files import, and each section of `python -m benchmarks cpu` starts."""

import importlib
from pathlib import Path

import pytest

import bsl.models.translation.ctranslate  # noqa: F401 - a module of C that is cut while it loads cannot load again
from benchmarks.__main__ import main
from benchmarks.device import bench, budget, device_limits
from bsl.tasks.diagnostics.finding import Finding
from tests.every import every

ROOT = Path(__file__).parents[2]


@every(lambda: sorted((ROOT / "benchmarks").rglob("*.py")))
def test_every_benchmark_imports_what_exists(file):
    module = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    assert hasattr(module, "main") or not file.name.startswith("bench_")


# An exception inside a callback of the garbage collector is reported and lost; the next one cuts the section.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_bench_finishes_when_every_section_exceeds_its_budget(monkeypatch):
    """Every section starts, is cut, and says so; the device limits come first and are complete."""
    monkeypatch.setattr(device_limits, "SHAPE", {"cpu": (64, 64, 64)})
    monkeypatch.setattr(device_limits, "COPIED", {"cpu": 1 << 20})
    monkeypatch.setattr(budget, "AGAIN_S", 0.5)
    monkeypatch.setitem(bench.BUDGETS, "cpu", dict.fromkeys(bench.BUDGETS["cpu"], 0.05))
    monkeypatch.setattr(bench, "LEAST_S", 0.05)
    rows = list(bench.bench("cpu", quick=True))
    ends = {row.subject: row.found for row in rows if isinstance(row, Finding) and row.subject.endswith(": complete")}
    sections = [name for name in bench.BUDGETS["cpu"] if name != "training"]
    assert ends == {f"{name}: complete": "cut after 0.05 s" for name in [*sections, "training, 64 pairs a step"]}
    assert [row.subject for row in rows][:1] == ["limit: products, fp32"]


def test_unknown_device_exits_with_code_2(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["gpu", "--device", "potato"])
    assert "error: no device potato: torch " in capsys.readouterr().err
