"""What share of small faults do the tests find? Each mutant has one: a flipped comparison, a number off by one …

`make mutants FOLDER=models COUNT=100` draws mutants of a folder, or of the folders and files named, writes each into
its file, runs tests that reach its line for at most a minute, and restores the file: use a worktree of its own. `make
coverage` records which tests reach which line. A mutant that no test reaches in its own process has survived. Survivors
say which tests are missing. Two commits are compared on the files that they share: equal files and seed give equal
mutants.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import os
import random
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "transformers", "sentence_transformers", "prefect", "polars", "pyarrow", "datasets", "hypothesis")
DURATION = re.compile(r"^ *([0-9.]+)s (?:call|setup|teardown) +(\S.*)$", re.MULTILINE)
TEST_SECONDS, MUTANT_SECONDS = 60.0, 240.0
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.Is: "is not",
    ast.IsNot: "is",
}

COMPUTED: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
}


@dataclass(frozen=True)
class Mutant:
    """One changed stretch of a file, in bytes."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    text: str


def mutants(file: Path) -> Iterator[Mutant]:
    source = file.read_text()
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def changed(node: ast.expr | ast.stmt, kind: str, text: str) -> Mutant:
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        name = file.relative_to(ROOT).as_posix()
        return Mutant(name, node.lineno, kind, starts[node.lineno - 1] + node.col_offset, end, text)

    def shown(node: ast.AST) -> str:
        return f"({ast.unparse(node)})"

    for node in _executed(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in COMPARED:
                yield changed(node, "comparison", f"({shown(left)} {COMPARED[type(operator)]} {shown(right)})")
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in COMPUTED:
                yield changed(node, "arithmetic", f"({shown(left)} {COMPUTED[type(operator)]} {shown(right)})")
            case ast.BoolOp(op=operator, values=values):
                word = " or " if isinstance(operator, ast.And) else " and "
                yield changed(node, "condition", f"({word.join(shown(value) for value in values)})")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield changed(node, "condition", shown(operand))
            case ast.Constant(value=bool() as value):
                yield changed(node, "constant", str(not value))
            case ast.Constant(value=int() | float() as value):
                yield changed(node, "constant", repr(value + 1))
            case ast.Call(func=function, args=[first, second], keywords=[]) if not isinstance(second, ast.Starred):
                swapped = f"{ast.unparse(function)}({ast.unparse(second)}, {ast.unparse(first)})"
                yield changed(node, "swapped arguments", swapped)
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
                yield changed(node, "lost statement", "pass")


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module without annotations and f-strings: neither is computed as written."""
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "type_params"}:
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr):
                yield node
                yield from _executed(node)


class Reached:
    """The tests that reach a line: those of its folder first, then the quickest."""

    def __init__(self, coverage: Path, durations: Path) -> None:
        self._data = CoverageData(str(coverage))
        self._data.read()
        seconds: dict[str, float] = defaultdict(float)
        for took, test in DURATION.findall(durations.read_text()):
            seconds[test] += float(took)
        self._seconds = seconds

    def tests(self, mutant: Mutant) -> list[str]:
        """Return tests of at most `TEST_SECONDS` in all; for a line run at import, those that reach the file."""
        lines = self._data.contexts_by_lineno(mutant.file)
        named = {context.split("|")[0] for context in lines.get(mutant.line, ())} - {""}
        if not named and mutant.line in lines:
            named = {context.split("|")[0] for contexts in lines.values() for context in contexts} - {""}
        chosen, total = [], 0.0
        near = f"tests/unit/{Path(mutant.file).parent}/"
        for test in sorted(named, key=lambda test: (not test.startswith(near), self._seconds[test], test)):
            total += self._seconds[test]
            if chosen and total > TEST_SECONDS:
                break
            chosen.append(test)
        return chosen


def is_killed(mutant: Mutant, tests: list[str]) -> bool:
    """Run the tests on the mutant in a child that has the heavy libraries already; no answer in time is a kill."""
    file = ROOT / mutant.file
    original = file.read_bytes()
    file.write_bytes(original[: mutant.start] + mutant.text.encode() + original[mutant.end :])
    child = os.fork()
    if child == 0:
        _run(tests)
    try:
        return _status(child) != 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        file.write_bytes(original)


def _run(tests: list[str]) -> None:
    os.setsid()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    # Pytest warns that it cannot rewrite a plugin that is imported already; as an error, it would kill every mutant.
    imported = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not gpu", f"--timeout={TEST_SECONDS:.0f}"]
    os._exit(int(pytest.main([*options, *imported, *tests])))


def _status(child: int) -> int:
    end = time.monotonic() + MUTANT_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    return -1


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, metavar="FOLDER", help="folders and files, of this repository")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--coverage", type=Path, default=ROOT / ".coverage")
    parser.add_argument("--durations", type=Path, default=ROOT / ".durations")
    given = parser.parse_args()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    for name in HEAVY:
        importlib.import_module(name)
    every = [mutant for place in given.places for file in _files(ROOT / place) for mutant in mutants(file)]
    reached, counts = Reached(given.coverage, given.durations), Counter[str]()
    for mutant in random.Random(given.seed).sample(every, given.count):
        tests = reached.tests(mutant)
        verdict = ("killed" if is_killed(mutant, tests) else "survived") if tests else "not reached"
        counts[verdict] += 1
        if verdict != "killed":
            line = (ROOT / mutant.file).read_text().splitlines()[mutant.line - 1].strip()
            print(f"{verdict}: {mutant.file}:{mutant.line}: {mutant.kind}: {line}  →  {mutant.text}", flush=True)
    share = 100 * counts["killed"] / given.count
    places = " ".join(map(str, given.places))
    print(f"{places}: {given.count} of {len(every)} mutants, {share:.0f} % killed: {dict(counts)}")


if __name__ == "__main__":
    main()
