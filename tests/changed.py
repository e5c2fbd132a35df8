"""Print the tests of the files that differ from a commit: `python tests/changed.py [COMMIT]`, by default HEAD.

The tests of FOLDER/NAME.py are tests/unit/FOLDER/test_NAME.py and test_NAME_ASPECT.py; its neighbours are the other
tests of that folder that import it. A changed test counts as its own test.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests" / "unit"


def changed(commit: str) -> list[Path]:
    """Return the existing Python files that differ from a commit, new files included."""
    diff = ["git", "diff", "--name-only", commit]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    lines = [line for command in (diff, new) for line in subprocess.check_output(command, cwd=ROOT, text=True).split()]
    return [Path(line) for line in lines if line.endswith(".py") and (ROOT / line).is_file()]


def tests_of(path: Path) -> Iterator[Path]:
    """Yield the tests of a file and its neighbours."""
    if path.name.startswith("test_") and path.parts[0] == "tests":
        yield ROOT / path
        return
    own = re.compile(rf"test_{re.escape(path.stem)}(_\w+)?\.py")
    imports = re.compile(rf"^\s*(from|import) bsl\.{re.escape('.'.join(path.with_suffix('').parts))}\b", re.MULTILINE)
    for test in sorted((UNIT / path.parent).glob("test_*.py")):
        if own.fullmatch(test.name) or imports.search(test.read_text(encoding="utf-8")):
            yield test


if __name__ == "__main__":
    paths = changed(*sys.argv[1:] or ["HEAD"])
    print(*dict.fromkeys(str(test.relative_to(ROOT)) for path in paths for test in tests_of(path)), sep="\n")
