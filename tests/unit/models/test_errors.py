"""Errors of models/ survive pickling between processes."""

import inspect
import pickle

import pytest

from bsl.models import errors
from tests.every import every

EXAMPLES = [
    errors.NonFiniteLossError(7, "loss", float("inf"), list(range(20)), "work/batch.parquet", "lower training.lr"),
    errors.InterruptedRunError(3, 10, "work"),
    errors.NoEmbeddingError(5, "gives no token; drop it"),
    *(
        kind("found a, expected b; do c")
        for kind in (
            errors.ModelError,
            errors.EncoderError,
            errors.TrainingError,
            errors.ResumeError,
            errors.DamagedSnapshotError,
            errors.EvaluationError,
        )
    ),
]


@every(EXAMPLES)
def test_an_error_survives_pickling_with_message_and_attributes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_model_that_needs_a_package_is_not_called_incomplete(tmp_path):
    def load():
        with errors.load_errors(tmp_path, errors.EncoderError):
            raise ImportError("You need to install fugashi to use MecabTokenizer.")

    with pytest.raises(errors.EncoderError, match=r"\(You need to install fugashi .*\)\. Install the package that it"):
        load()


def test_errors_are_documented_and_messages_name_evidence_and_next_step():
    loss, stop = (str(error) for error in EXAMPLES[:2])
    assert "loss is inf at step 7" in loss
    assert "[0, 1, 2, 3, 4, 5, 6, 7, … 20 rows]" in loss
    assert "after step 3 of 10. Its state is saved in work. Run again" in stop
    kinds = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    assert all(issubclass(kind, errors.ModelError) for kind in kinds.values())
    assert all(name in (errors.__doc__ or "") for name in kinds)
