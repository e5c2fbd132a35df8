"""Small datasets under the name of a declared, larger one."""

import pytest

from storage.datasets.registry import DATASETS


def allow_any_rows(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Remove the declared row counts of datasets for the duration of a test."""
    for name in names:
        monkeypatch.setitem(DATASETS, name, DATASETS[name].model_copy(update={"rows": {}}))
