"""A store in a local folder."""

import pytest

from bsl.storage.artifacts.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "store"), tmp_path / "cache")
