"""Fixtures of the readers' tests."""

import pytest

from storage.readers.report import ReadReport


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
