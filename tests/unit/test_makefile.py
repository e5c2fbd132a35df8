"""The Makefile installs once for each state of the requirements and build of torch, and lists existing tests."""

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHER = "TORCH=torch==2.13.0 --index-url https://example.org/cuda"


@pytest.fixture
def folder(tmp_path):
    """A checkout whose virtual environment records the calls of pip."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pip"):
        (programs / name).write_text('#!/bin/sh\necho "$@${PIP_QUIET:+ (quiet)}" >> asked.txt\n')
        (programs / name).chmod(0o755)
    return tmp_path


def asked(folder: Path, *arguments: str, target: str = "install", gpus: str = "", terminal: int | None = None) -> str:
    """Return the calls of pip by a `make` of a target, on a machine with these GPUs; by default without a terminal."""
    log = folder / "asked.txt"
    log.write_text("")
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '%s' '{gpus}'\n")
    (programs / "nvidia-smi").chmod(0o755)
    environment = {
        name: value for name, value in os.environ.items() if name not in {"TORCH", "EXTRA", "MAKEFLAGS", "MAKELEVEL"}
    }
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    command = ["make", target, *arguments]
    if terminal is None:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    else:
        subprocess.run(command, cwd=folder, check=True, stdout=terminal, env=environment)
    return log.read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_install_replaces_a_different_torch_build(folder):
    first = asked(folder)
    assert "install --disable-pip-version-check torch==2.13.0 (quiet)\n" in first
    assert asked(folder) == ""
    other = asked(folder, OTHER)
    assert other.index("uninstall") < other.index("torch==2.13.0 --index-url https://example.org/cuda")
    assert asked(folder, OTHER) == asked(folder) == ""
    assert asked(folder, "TORCH=torch==2.13.0") == first


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_install_shows_progress_of_pip_in_a_terminal_only(folder):
    controller, terminal = pty.openpty()
    try:
        assert "version-check torch==2.13.0\n" in asked(folder, terminal=terminal)
    finally:
        os.close(controller)
        os.close(terminal)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_install_excludes_dev_requirements(folder):
    assert "[dev]" not in asked(folder)
    assert ".[dev]" in asked(folder, target="develop")
    assert asked(folder, target="develop") == ""
    assert asked(folder) == ""


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_avx2_target_runs_existing_tests_with_its_variables(folder):
    command = asked_of_make(folder, "test-avx2")
    variables, _, paths = command.partition(" PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest ")
    assert variables == "ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2"
    assert_tests(paths)
    script = (ROOT / ".ci" / "run").read_text()
    assert "weak=test-avx2" in script
    assert script.splitlines()[-1] == "make lint $weak test test-journeys $changed"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_journeys_target_runs_existing_slow_tests(folder):
    command, _, paths = asked_of_make(folder, "test-journeys").partition(" -m slow ")
    assert command == "PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest"
    assert_tests(paths)
    files = {path.partition("::")[0] for path in paths.split()}
    for path in files:
        sources = [ROOT / path] if path.endswith(".py") else (ROOT / path).glob("*.py")
        assert any("mark.slow" in file.read_text() for file in sources), path


def assert_tests(paths: str) -> None:
    """Check that each file, folder or test of a command exists."""
    for path in paths.split():
        file, _, name = path.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text() if name else (ROOT / file).exists()


def asked_of_make(folder: Path, target: str) -> str:
    """Return the last command that a target would run."""
    environment = {name: value for name, value in os.environ.items() if name not in {"TORCH", "MAKEFLAGS", "MAKELEVEL"}}
    command = ["make", "--dry-run", target]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("gpus", "arguments", "found"), [("", (), False), ("GPU 0: H100", (), True), ("GPU 0: H100", ("EXTRA=",), False)]
)
def test_install_adds_the_gpu_extra_on_gpu_machines(folder, gpus, arguments, found):
    assert ("--editable .[gpu]" in asked(folder, *arguments, gpus=gpus)) == found


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", ["test-assets", "test-benchmarks"])
def test_targets_of_folders_outside_the_package_run_existing_tests(folder, target):
    _, _, path = asked_of_make(folder, target).rpartition(" ")
    assert list((ROOT / path).glob("test_*.py"))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_ci_tests_assets_and_benchmarks_only_if_the_last_commit_changed_them(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "make").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "make").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, env=environment)
        return done.stdout

    def targets_after(*names: str) -> set[str]:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("changed\n")
        run("git", "add", "--all")
        run("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "--message=x")
        return set(run(".ci/run").split()) & {"test", "test-assets", "test-benchmarks"}

    run("git", "init", "--quiet")
    assert targets_after("README.md") == {"test", "test-assets", "test-benchmarks"}  # no earlier commit
    assert targets_after("models/loss.py") == {"test"}
    assert targets_after("storage/assets/bert-mini/manifest.json") == {"test", "test-assets"}
    assert targets_after("tests/benchmarks/test_device.py", "benchmarks/README.md") == {"test", "test-benchmarks"}
