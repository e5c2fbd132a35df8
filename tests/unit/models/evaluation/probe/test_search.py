"""The batched SentEval protocol equals the plain one fold by fold: float64 rounding changes no prediction."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import ProbeConfig
from bsl.models.evaluation.probe.problem import Part, make_problem
from bsl.models.evaluation.probe.search import probe
from tests.senteval_restated import Restated

MIRROR = os.environ.get("BSL_DATA_MIRROR")
PLAIN = Restated(folds=3, dtype=torch.float64, max_epoch=24, tenacity=2)
CONFIG = ProbeConfig(folds=3, max_epoch=24, tenacity=2)


def rows(n: int, width: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    return (random.normal(size=(n, width)) + random.normal(size=(classes, width))[y]).astype(np.float32), y


def part(x: np.ndarray, y: np.ndarray) -> Part:
    return Part(x, y, np.arange(len(y)))


def names(classes: int) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(classes))


def problem(layout: str, *parts: tuple[np.ndarray, np.ndarray], classes: int, folds: int = 3):
    splits = {"nested": ("all",), "kfold": ("train", "test"), "split": ("train", "dev", "test")}[layout]
    table = {name: part(*one) for name, one in zip(splits, parts, strict=True)}
    return make_problem(layout, layout, table, names(classes), folds=folds, seed=1111)


def same(outcomes, plain) -> None:
    assert len(outcomes) == len(plain)
    for ours, (scores, decay, predicted) in zip(outcomes, plain, strict=True):
        assert ours.dev == scores
        assert ours.penalty == decay
        np.testing.assert_array_equal(ours.predicted, predicted)


def test_batched_search_equals_plain_protocol_in_every_layout():
    # 150 and 131 rows: fits of unequal lengths and step counts, in one batch of two tasks of one shape.
    one, two = rows(150, 6, 2), rows(131, 6, 2, seed=1)
    train, test = rows(140, 5, 4, seed=2), rows(40, 5, 4, seed=3)
    dev = rows(33, 5, 4, seed=4)
    problems = [
        problem("nested", one, classes=2),
        problem("nested", two, classes=2),
        problem("kfold", train, test, classes=4),
        problem("split", train, dev, test, classes=4),
    ]
    found = probe(problems, "senteval", CONFIG, dtype=torch.float64)
    same(found[0], PLAIN.nested(*one, 2))
    same(found[1], PLAIN.nested(*two, 2))
    same(found[2], PLAIN.kfold(train, test, 4))
    same(found[3], PLAIN.split(train, dev, test, 4))


def test_fewer_than_twenty_training_rows_are_rejected():
    task = problem("kfold", rows(19, 3, 2), rows(9, 3, 2), classes=2)
    with pytest.raises(EvaluationError, match="19 training rows, expected at least 20"):
        probe([task], "senteval", CONFIG)


def test_seed_determines_predictions_and_dev_scores():
    task = [problem("kfold", rows(120, 5, 2), rows(50, 5, 2, seed=1), classes=2)]
    first, again = (probe(task, "senteval", CONFIG)[0][0] for _ in range(2))
    np.testing.assert_array_equal(first.predicted, again.predicted)
    assert first.dev == again.dev
    other = probe(task, "senteval", CONFIG.model_copy(update={"seed": 7}))[0][0]
    assert first.dev != other.dev


@pytest.mark.real_data
@pytest.mark.skipif(not MIRROR, reason="BSL_DATA_MIRROR names no mirror")
@pytest.mark.parametrize("dataset", ["trec", "cr"])
def test_batched_search_equals_plain_protocol_on_real_sentences(dataset):
    """Features are hashed words: they need no encoder, and the classes can be learnt from them."""
    if dataset == "trec":
        train, test = (hashed(dataset, split, "coarse_label", 600) for split in ("train", "test"))
        task, expected = problem("kfold", train, test, classes=6), PLAIN.kfold(train, test, 6)
    else:
        table = hashed(dataset, "all", "label", 150)
        task, expected = problem("nested", table, classes=2), PLAIN.nested(*table, 2)
    same(probe([task], "senteval", CONFIG, dtype=torch.float64)[0], expected)


def hashed(dataset: str, split: str, label: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    frame = pl.read_parquet(Path(str(MIRROR)) / dataset / f"{split}.parquet").sample(fraction=1, shuffle=True, seed=0)
    frame = frame.head(count)
    x = np.zeros((frame.height, 32), dtype=np.float32)
    for row, text in enumerate(frame["text"]):
        for word in text.split():
            x[row, sum(word.encode()) % 32] += 1
    return x, np.unique(frame[label].to_numpy(), return_inverse=True)[1].astype(np.int64)
