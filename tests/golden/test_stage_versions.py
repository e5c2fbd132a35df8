"""Changing code behind a stage forces a choice: bump the stage's version, or state that its artifacts stay the same.

The pins are the version of each stage, and a hash of each module behind a stage. A failure names the changed module and
the stages that use it. Decide whether their artifacts change; then `python tests/golden/test_stage_versions.py MODULE…`
pins these modules and no others. The line in the diff states that nothing changed, unless a version was bumped.
"""

import ast
import hashlib
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import tasks
from tasks.stage.cached import Stage

sys.path.append(str(Path(__file__).resolve().parents[2]))  # when run as a script

from tests.every import every

ROOT = Path(__file__).resolve().parents[2]
PINS = Path(__file__).with_name("stage_versions.json")
ROOTS = ("models", "storage", "tasks")
# Modules that run every stage and decide no content: their own tests judge a change.
CARRIERS = {
    "models.runtime.progress",
    "tasks.stage.run_context",
    *(
        f"tasks.stage.{name}"
        for name in (
            "cached",
            "inputs",
            "leases",
            "records",
            "ui",
            "progress",
            "ui_page",
            "log_context",
            "device",
            "sigterm",
        )
    ),
    *(f"tasks.stage.{name}" for name in ("shards", "cluster")),
    "storage.errors",
    *(
        f"storage.artifacts.{name}"
        for name in (
            *("store", "verification"),
            *("draft", "manifest", "keys", "refs", "schemas", "leases"),
        )
    ),
    *(f"storage.filesystem.{name}" for name in ("atomic", "folders", "urls", "os_errors", "names")),
}


@cache
def stages() -> dict[str, Stage]:
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(tasks.__path__, "tasks.")]
    return {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Stage)}


def file_of(module: str) -> Path | None:
    path = ROOT / module.replace(".", "/")
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    return found[0] if found else None


@cache
def tree_of(module: str) -> ast.Module:
    file = file_of(module)
    assert file is not None
    return ast.parse(file.read_text())


def run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all nodes below it, except imports for type checking, which never run."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield from run_nodes(child)


def imports(nodes: Iterable[ast.AST]) -> dict[str, set[str]]:
    """Return name bound by an import → our modules it can refer to; includes imports inside functions."""
    bound: dict[str, set[str]] = {}
    for node in (inner for outer in nodes for inner in run_nodes(outer)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                bound.setdefault(alias.asname or alias.name, set()).update((node.module, f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                bound.setdefault((alias.asname or alias.name).split(".")[0], set()).add(alias.name)
    ours = {name: {each for each in named if each.split(".")[0] in ROOTS} for name, named in bound.items()}
    return {name: {each for each in named if file_of(each)} - CARRIERS for name, named in ours.items()}


def behind(function: str, module: str) -> set[str]:
    """Return the modules that a function uses, directly or through other functions of its module."""
    body = tree_of(module).body
    defined = {name: node for node in body for name in _names(node)}
    at_top = imports(node for node in body if isinstance(node, ast.Import | ast.ImportFrom))
    seen: set[str] = set()
    ahead, modules = {function}, {module}
    while ahead:
        name = ahead.pop()
        seen.add(name)
        modules |= at_top.get(name, set())
        if name in defined:
            modules |= set().union(*imports([defined[name]]).values())
            used = {inner.id for inner in ast.walk(defined[name]) if isinstance(inner, ast.Name)}
            ahead |= used - seen
    return modules


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]


@cache
def imported(module: str) -> frozenset[str]:
    """Return our modules that a module imports anywhere in its code."""
    return frozenset().union(*imports([tree_of(module)]).values())


@cache
def reach(stage: Stage) -> frozenset[str]:
    """Return the modules behind a stage: its own, those that its function uses, and all modules that these import."""
    seen = {stage.module}
    ahead = behind(stage.compute.__name__, stage.module) - seen
    while ahead:
        name = ahead.pop()
        seen.add(name)
        ahead |= imported(name) - seen
    return frozenset(seen)


@cache
def standing_on() -> dict[str, list[str]]:
    """Return the stages behind which each module is: module → stages."""
    found: dict[str, list[str]] = {}
    for name, stage in sorted(stages().items()):
        for module in reach(stage):
            found.setdefault(module, []).append(name)
    return dict(sorted(found.items()))


def hash_of(module: str) -> str:
    """Hash the code of a module, and the CSV table of the same name."""
    file = file_of(module)
    assert file is not None
    table = file.with_suffix(".csv")
    data = table.read_bytes() if table.is_file() else b""
    # The newer Python's Unicode, the fewer characters `repr` escapes.
    code = bare(tree_of(module)).encode("ascii", "backslashreplace")
    return hashlib.sha256(code + data).hexdigest()[:16]


def bare(tree: ast.Module) -> str:
    """Dump the syntax tree without comments, docstrings and positions, in the form of Python 3.11."""
    copied = ast.parse(ast.unparse(tree))
    for node in ast.walk(copied):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body:
            node.body = [item for item in body if not _is_text(item)]
    shown = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(copied, **shown).replace(", type_params=[]", "")


def _is_text(item: ast.AST) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)


def pins() -> dict[str, dict[str, object]]:
    return json.loads(PINS.read_text())


@every(standing_on)
def test_module_hash_matches_its_pin(module):
    behind_it = ", ".join(f"{name} (version {stages()[name].version})" for name in standing_on()[module])
    assert pins()["modules"].get(module) == hash_of(module), (
        f"{module} has changed, and on it stand: {behind_it}. Bump the versions of those whose artifacts change, "
        f"then run `python tests/golden/test_stage_versions.py {module}`"
    )


@every(stages)
def test_stage_version_matches_its_pin(name):
    assert pins()["stages"].get(name) == stages()[name].version, (
        f"stage {name!r} is at version {stages()[name].version}: run `python tests/golden/test_stage_versions.py`"
    )


def test_pins_cover_exactly_the_current_modules_and_stages():
    assert sorted(pins()["modules"]) == sorted(standing_on())
    assert sorted(pins()["stages"]) == sorted(stages())


def test_stage_reach_includes_late_imports_and_excludes_unused_modules():
    training, embedding, pairing = (reach(stages()[name]) for name in ("train", "embed", "pair"))
    assert {
        "models.training.loop",
        "models.objectives.bsl",
        "models.objectives.redundancy_reduction",
        "storage.readers.columns",
    } <= training
    assert "models.translation.marian" in reach(stages()["translate"])
    assert "models.encoder.unpadded" in embedding
    assert not any(module.startswith(("models.training", "models.objectives")) for module in embedding)
    assert not any(module.startswith(("models.encoder", "models.translation")) for module in pairing)


def test_module_hash_ignores_docstrings_and_comments():
    one, two, other = (
        bare(ast.parse(code))
        for code in (
            'def f():\n    """One."""\n    return 1  # reason\n',
            'def f():\n    """Two."""\n    return 1\n',
            "def f():\n    return 2\n",
        )
    )
    assert one == two != other


def pin(modules: list[str]) -> None:
    """Pin the named modules and all versions; drop pins of deleted code."""
    if unknown := [module for module in modules if module not in standing_on()]:
        sys.exit(f"no stage stands on {', '.join(unknown)}")
    before = pins()["modules"] if PINS.is_file() else {}
    kept = {module: value for module, value in before.items() if module in standing_on()}
    now = {**kept, **{module: hash_of(module) for module in modules}}
    versions = {name: stage.version for name, stage in sorted(stages().items())}
    PINS.write_text(json.dumps({"stages": versions, "modules": dict(sorted(now.items()))}, indent=1) + "\n")


if __name__ == "__main__":
    pin(sys.argv[1:])
