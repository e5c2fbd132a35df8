"""Runs of a sweep: a point's own fault leaves it without a figure, whatever else ends the sweep."""

import pickle

import pytest

from flows.points import Attempt, attempted
from flows.pool import Job
from flows.recipes import recipe
from models.errors import CollapseError, InterruptedRunError, NonFiniteLossError, ResumeError
from models.translation.errors import TranslationStoppedError
from storage.errors import SourceError
from tasks.stage.deployed import FailedRunError, PoolError
from tasks.stage.spread import ErrandError

POINT = Attempt("momentum 0.5, seed 1", Job("tiny", recipe("tiny")))


def ending(error: Exception):
    def way(job: Job):
        raise error

    return way


@pytest.mark.parametrize(
    "error",
    [
        CollapseError(3, "rank is gone", {"std": (1.0, 0.0)}, "lower the rate"),
        NonFiniteLossError(1, "loss", float("nan"), [0], None, "lower the rate"),
        FailedRunError("bsl-pipeline/tiny: run a ended as Failed"),
        ResumeError("another run's"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_a_point_s_own_is_kept_and_named(error, caplog):
    assert attempted(POINT, ending(error)) is error
    assert f"momentum 0.5, seed 1 is left without a figure: {error}" in caplog.text
    assert type(pickle.loads(pickle.dumps(error))) is type(error)  # it comes back from another process


@pytest.mark.parametrize(
    "error",
    [
        InterruptedRunError(3, 10, None),
        TranslationStoppedError("told to stop"),
        PoolError("no such deployment"),
        ErrandError("no cluster"),
        SourceError("nobody has it"),
        KeyError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_no_other_point_would_survive_ends_the_sweep(error, caplog):
    with pytest.raises(type(error)):
        attempted(POINT, ending(error))
    assert f"momentum 0.5, seed 1: {error}" in caplog.text
