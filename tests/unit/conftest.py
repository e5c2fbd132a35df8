"""Fixtures of several unit tests."""

import pytest

from bsl.storage.readers.read_report import ReadReport
from bsl.tasks.stage.run_context import RunContext


@pytest.fixture
def site(tmp_path) -> RunContext:
    return RunContext(store=str(tmp_path / "store"), device="cpu", threads=1)


@pytest.fixture
def report() -> ReadReport:
    return ReadReport("test")


@pytest.fixture
def write(tmp_path):
    def call(name: str, content: bytes | str) -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return call
