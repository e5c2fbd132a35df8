"""Print the tests of the files that differ from a commit: `python tests/changed.py [COMMIT]`, by default HEAD.

The tests of FOLDER/NAME.py are tests/unit/FOLDER/test_NAME.py and test_NAME_ASPECT.py; its neighbours are other unit
tests that import it or a folder with it, or those of its folder if more than `MOST` do. A file without any has at most
`MOST` tests of the files that import it, else those of its folder. A changed test counts as its own test; documents
have the tests of tests/unit/docs.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests" / "unit"
MOST = 8
PRODUCT = ("bsl", "flows", "tasks", "models", "storage")


def changed(commit: str) -> list[Path]:
    """Return the existing Python files and documents that differ from a commit, new files included."""
    diff = ["git", "diff", "--name-only", commit]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    lines = [line for command in (diff, new) for line in subprocess.check_output(command, cwd=ROOT, text=True).split()]
    return [Path(line) for line in lines if line.endswith((".py", ".md")) and (ROOT / line).is_file()]


def tests_of(path: Path) -> list[Path]:
    """Return the tests of a file and its neighbours, or of the files that it serves."""
    if path.suffix == ".md":
        return [UNIT / "docs" / "test_documents.py"]
    if path.name.startswith("test_") and path.parts[0] == "tests":
        return [ROOT / path]
    if path.parts[0] not in PRODUCT:
        return []
    own, served, seen = UNIT / path.parent, [path], {path}
    while served:
        if found := dict.fromkeys(test for file in served for test in _direct(file)):
            return list(found) if served == [path] else sorted(found, key=lambda test: test.parent != own)[:MOST]
        served = [file for file in _product() if file not in seen and any(_imports(one, ROOT / file) for one in served)]
        seen |= {*served}
    return sorted(own.glob("test_*.py"))


def _product() -> list[Path]:
    return [path.relative_to(ROOT) for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]


def _direct(path: Path) -> list[Path]:
    """Return the tests of a file and those that import it."""
    own = sorted(test for test in (UNIT / path.parent).glob("test_*.py") if _is_own(path, test))
    importers = [test for test in sorted(UNIT.rglob("test_*.py")) if _imports(path, test)]
    if len(importers) > MOST:
        importers = [test for test in importers if test.parent == UNIT / path.parent]
    return [*own, *importers]


def _is_own(path: Path, test: Path) -> bool:
    return re.fullmatch(rf"test_{re.escape(path.stem)}(_\w+)?\.py", test.name) is not None


def _imports(path: Path, file: Path) -> bool:
    """Whether a file imports a module, or a folder that contains it, as the test of all objectives does."""
    module = path.with_suffix("")
    names = [".".join(module.parts)]
    names += [f"{'.'.join(place.parent.parts)} import .*\\b{place.name}" for place in (module, *path.parents[:-2])]
    found = rf"^\s*(from|import) bsl\.({'|'.join(names)})\b"
    return re.search(found, file.read_text(encoding="utf-8"), re.MULTILINE) is not None


if __name__ == "__main__":
    paths = changed(*sys.argv[1:] or ["HEAD"])
    print(*dict.fromkeys(str(test.relative_to(ROOT)) for path in paths for test in tests_of(path)), sep="\n")
