"""Changing the code behind a stage forces a choice: bump its version, or state that the result is unchanged.

`python tests/golden/test_stage_versions.py` pins the present code. Run it after deciding; a bumped version or, without
one, the new fingerprint in the diff is that statement.
"""

import ast
import hashlib
import importlib
import json
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import tasks
from tasks.stage.cached import Stage

ROOT = Path(__file__).resolve().parents[2]
PINS = Path(__file__).with_name("stage_versions.json")


def stages() -> dict[str, Stage]:
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(tasks.__path__, "tasks.")]
    return {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Stage)}


ROOTS = ("models", "storage", "tasks")
# What carries every stage and decides no content: a change here is judged by its own tests.
CARRIERS = {
    "tasks.site",
    *(f"tasks.stage.{name}" for name in ("cached", "records", "show", "logs", "machine")),
    *(f"storage.{name}" for name in ("store", "draft", "manifest", "keys", "refs", "errors", "schemas", "hub")),
}


def file_of(module: str) -> Path | None:
    path = ROOT / module.replace(".", "/")
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    return found[0] if found else None


@cache
def imported(module: str) -> set[str]:
    """Modules of ours that a module imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file_of(module).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.split(".")[0] in ROOTS and file_of(name)} - CARRIERS


def reach(module: str) -> list[str]:
    """The modules behind a stage: its own and all that it imports, directly or not."""
    seen: set[str] = set()
    ahead = {module}
    while ahead:
        name = ahead.pop()
        seen.add(name)
        ahead |= imported(name) - seen
    return sorted(seen)


def fingerprint(stage: Stage) -> str:
    trees = [code_of(module) for module in reach(stage.module)]
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()[:16]


def test_fingerprint_reaches_what_a_stage_imports_late():
    assert {"models.training.loop", "models.objectives.bsl", "models.objectives.vicreg", "storage.readers.sts"} <= set(
        reach("tasks.train")
    )
    assert "models.translation.decode" in reach("tasks.translate")


@cache
def code_of(module: str) -> str:
    return _bare(file_of(module).read_text())


def _bare(source: str) -> str:
    """The syntax tree without comments, docstrings and positions."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body:
            node.body = [
                item
                for item in body
                if not (
                    isinstance(item, ast.Expr)
                    and isinstance(item.value, ast.Constant)
                    and isinstance(item.value.value, str)
                )
            ]
    return ast.dump(tree)


def pin_of(stage: Stage) -> dict[str, object]:
    return {"version": stage.version, "fingerprint": fingerprint(stage)}


@pytest.mark.parametrize("name", sorted(stages()))
def test_stage_is_as_pinned(name):
    pinned = json.loads(PINS.read_text())
    assert pinned.get(name) == pin_of(stages()[name]), (
        f"the code behind stage {name!r} has changed: bump its version in tasks/ if its artifacts change, "
        "then run `python tests/golden/test_stage_versions.py`"
    )


def test_no_pin_outlives_its_stage():
    assert sorted(json.loads(PINS.read_text())) == sorted(stages())


def test_docstrings_and_comments_do_not_count():
    assert _bare('def f():\n    """One."""\n    return 1  # reason\n') == _bare(
        'def f():\n    """Two."""\n    return 1\n'
    )
    assert _bare("def f():\n    return 1\n") != _bare("def f():\n    return 2\n")


if __name__ == "__main__":
    pins = {name: pin_of(stage) for name, stage in sorted(stages().items())}
    PINS.write_text(json.dumps(pins, indent=1) + "\n")
