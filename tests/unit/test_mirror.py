"""Test files have the folder of the code that they test, and start with its name."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = Path(__file__).parent
ROOMS = ("flows", "tasks", "models", "storage")


def _tests_code_of_its_folder(test: Path) -> bool:
    folder, name = ROOT / test.relative_to(UNIT).parent, test.stem.removeprefix("test_")
    known = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir() if path.is_dir()}
    return any(name == code or name.startswith(f"{code}_") for code in known)


def test_each_test_file_mirrors_the_code_that_it_tests() -> None:
    tests = [test for room in ROOMS for test in (UNIT / room).rglob("test_*.py")]
    assert tests
    assert [str(test.relative_to(ROOT)) for test in tests if not _tests_code_of_its_folder(test)] == []
