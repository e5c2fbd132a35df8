"""Small datasets under the name of a declared, larger one, and the files of datasets."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bsl.storage.datasets.registry import DATASETS


def allow_any_rows(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Remove the declared row counts of datasets for the duration of a test."""
    for name in names:
        monkeypatch.setitem(DATASETS, name, DATASETS[name].model_copy(update={"rows": {}}))


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> str:
    """Write files by their paths in a folder; return its path."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder)
