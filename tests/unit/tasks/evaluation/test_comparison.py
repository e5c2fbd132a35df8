"""Two systems on several sets: the paired bootstrap of each set, and of the mean of the test sets."""

import numpy as np
import polars as pl
import pytest

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.significance.hierarchical import difference_of, draws_of, figure_of, mean_draws
from bsl.models.evaluation.sweep import MEAN
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import EmbeddingsRef
from bsl.storage.datasets.declaration import Dataset
from bsl.storage.datasets.registry import DATASETS
from bsl.tasks.corpus.evaluation_sets import read_scored_set, resolve_scored_set, unique_sentences
from bsl.tasks.embedding.vectors import open_vectors
from bsl.tasks.evaluation.comparison import compare
from bsl.tasks.evaluation.sts import cosines_of
from bsl.tasks.stage.run_context import RunContext

PAIRS = 60
DRAWN = BootstrapConfig(resamples=200, seed=3)
NAMES = ("one/test", "one/dev", "two/test")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A mirror of two sets with random gold scores; one of them has a dev split."""
    generator = np.random.default_rng(0)
    for name, splits in (("one", ("test", "dev")), ("two", ("test",))):
        declared = Dataset(name=name, licence="-", citation="-", splits={s: s for s in splits}, score_range=(0, 5))
        monkeypatch.setitem(DATASETS, name, declared)
        (tmp_path / name).mkdir()
        for split in splits:
            sides = {f"sentence{side}": [f"{name} {split} {side} {n}" for n in range(PAIRS)] for side in (1, 2)}
            table = pl.DataFrame({**sides, "score": generator.uniform(0, 5, PAIRS)})
            table.write_parquet(tmp_path / name / f"{split}.parquet")
    return RunContext(store=str(tmp_path / "store"), mirror=str(tmp_path), device="cpu", threads=1)


def test_compare_pairs_differences_by_set_and_mean_excludes_dev(site):
    sets, store, refs = {name: resolve_scored_set(site, name) for name in NAMES}, site.open_store(), []
    ids = unique_sentences(tuple(sets.values()))["sentence_id"]
    for number in range(2):
        refs.append(EmbeddingsRef(key=64 * str(number)))
        vectors = np.random.default_rng(number).normal(size=(len(ids), 4)).astype(np.float32)
        with store.draft(refs[-1], Provenance(stage_version=1, config={})) as draft:
            draft.write(pl.DataFrame({"sentence_id": ids, "embedding": vectors}))
    asked = {"first": refs[0], "second": refs[1], "names": ("old", "new"), "sets": sets, "config": DRAWN}
    ref = compare(site, **asked)
    rows = store.scan(ref).collect().rows(named=True)
    assert [(row["dataset"], row["split"], row["n"]) for row in rows] == [
        ("one", "test", PAIRS), ("one", "dev", PAIRS), ("two", "test", PAIRS), (MEAN, "test", 2 * PAIRS),
    ]  # fmt: skip
    assert {(row["model"], row["reference"], row["metric"], row["subset"]) for row in rows} == {
        ("new", "old", "spearman", "all")
    }

    both = [open_vectors(store, ref) for ref in refs]
    gold = {name: read_scored_set(own)["score"].to_numpy() for name, own in sets.items()}
    cosines = {name: [cosines_of(vectors, own) for vectors in both] for name, own in sets.items()}
    expected = [
        difference_of(
            *(draws_of(gold[name], own[None], resamples=DRAWN.resamples, seed=DRAWN.seed) for own in cosines[name])
        )
        for name in NAMES
    ]
    tests = [name for name in NAMES if name.endswith("test")]
    drawn = [
        [
            draws_of(gold[name], cosines[name][place][None], resamples=DRAWN.resamples, seed=DRAWN.seed + number)
            for number, name in enumerate(tests)
        ]
        for place in range(2)
    ]
    for row, found in zip(rows, [*expected, difference_of(*map(mean_draws, drawn))], strict=True):
        assert (row["value"], row["ci_low"], row["ci_high"], row["p_value"]) == (
            found.value, found.ci_low, found.ci_high, found.p_value,
        )  # fmt: skip

    figures = store.scan(ref, "compared").filter(dataset=MEAN).collect().rows(named=True)
    for row, of_system in zip(figures, drawn, strict=True):
        mean = figure_of(mean_draws(of_system))
        assert (row["value"], row["ci_low"], row["ci_high"]) == (mean.mean, mean.ci_low, mean.ci_high)
    assert [row["model"] for row in figures] == ["old", "new"]
    found = store.scan(ref, "cosines").collect()
    for name in NAMES:
        dataset, _, split = name.partition("/")
        for place, model in enumerate(("old", "new")):
            stored = found.filter(dataset=dataset, split=split, model=model).sort("row")["cosine"]
            np.testing.assert_array_equal(stored, cosines[name][place])
