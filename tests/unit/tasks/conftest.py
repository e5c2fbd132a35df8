"""An empty store, and small sets of scored pairs under names of their own."""

import pytest

from bsl.storage.datasets.declaration import Dataset
from bsl.storage.datasets.registry import DATASETS


@pytest.fixture
def store(site):
    return site.open_store()


@pytest.fixture
def declare(site, tmp_path, monkeypatch):
    """Return a function that declares a set by its splits, and returns a run context whose mirror has it."""

    def call(name, **splits):
        named = {split: split for split in splits}
        declared = Dataset(name=name, licence="-", citation="-", splits=named, score_range=(0, 5))
        monkeypatch.setitem(DATASETS, name, declared)
        (tmp_path / "mirror" / name).mkdir(parents=True)
        for split, table in splits.items():
            table.write_parquet(tmp_path / "mirror" / name / f"{split}.parquet")
        return site.model_copy(update={"mirror": str(tmp_path / "mirror")})

    return call
