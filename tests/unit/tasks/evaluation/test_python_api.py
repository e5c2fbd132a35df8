"""Any object with `encode` is scored like an encoder, and refused if its vectors are invalid."""

import numpy as np
import polars as pl
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.storage.datasets.declaration import Dataset
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.tasks.embedding import python_encoders
from bsl.tasks.evaluation.kinds import UnknownSuiteError
from bsl.tasks.evaluation.python_api import Evaluation, evaluate
from bsl.tasks.stage.run_context import RunContext

PAIRS = pl.DataFrame(
    {
        "sentence1": ["a cat sat", "a dog ran", "a cat sat"],
        "sentence2": ["a cat sits", "it rains", "a dog ran"],
        "score": [4.0, 0.5, 2.0],
    }
)


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """Return a function that scores an object on a declared set of three pairs."""
    declared = Dataset(name="mine", licence="-", citation="-", splits={"test": "test"}, score_range=(0, 5))
    monkeypatch.setitem(DATASETS, "mine", declared)
    (tmp_path / "mine").mkdir()
    PAIRS.write_parquet(tmp_path / "mine" / "test.parquet")

    def call(encoder) -> Evaluation:
        return evaluate(encoder, ["mine/test"], RunContext(mirror=str(tmp_path)), BootstrapConfig(resamples=100))

    return call


class Letters:
    """Letter counts: a real, if poor, encoder."""

    def __init__(self):
        self.calls: list[list[str]] = []

    def encode(self, texts):
        self.calls.append(texts)
        return np.array([[text.count(chr(97 + letter)) for letter in range(26)] for text in texts], dtype=np.float32)


def test_evaluate_embeds_each_unique_sentence_once(scored):
    encoder = Letters()
    scores = scored(encoder).scores
    assert encoder.calls == [["a cat sat", "a dog ran", "a cat sits", "it rains"]]
    assert scores.filter(metric="spearman")["value"].item() == pytest.approx(1.0)
    assert scores["n"].unique().to_list() == [3]
    assert "|vectors:object Letters|" in scores["signature"][0]


def test_evaluate_refuses_an_empty_suite_and_an_object_without_encode(scored):
    with pytest.raises(UnknownSuiteError, match="the suite is empty, expected at least one set"):
        evaluate(Letters(), [])
    with pytest.raises(UnknownSuiteError, match="unknown suite or set 'mnie/test'"):
        evaluate(Letters(), "mnie/test")
    with pytest.raises(TypeError, match=r"the encoder is 5, expected a function, or an object with encode"):
        scored(5)


def test_evaluate_calls_encode_in_batches_of_bounded_size(scored, monkeypatch):
    whole = scored(Letters()).scores
    monkeypatch.setattr(python_encoders, "CALL_TEXTS", 3)
    encoder = Letters()
    assert scored(encoder).scores.equals(whole)
    assert [len(call) for call in encoder.calls] == [3, 1]


class Given:
    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts):
        return self.vectors(texts)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (lambda texts: np.ones((len(texts) + 1, 4)), r"mine test, row 1, sentence1: .*shape \(5, 4\) for 4 texts"),
        (lambda texts: np.ones(len(texts)), r"shape \(4,\) for 4 texts \(expected \(4, d\)"),
        (lambda texts: [[1.0] * (3 + (text == "it rains")) for text in texts], "is not a matrix"),
        (
            lambda texts: [[np.nan if text == "it rains" else 1.0] for text in texts],
            "mine test, row 2, sentence2: the vector of 'it rains' is not finite",
        ),
        (lambda texts: np.ones((len(texts), 4)), "mine test .*all 3 values"),
    ],
)
def test_invalid_encoder_output_error_names_dataset_and_row(scored, vectors, message):
    with pytest.raises(EvaluationError, match=message):
        scored(Given(vectors))


def test_encoder_with_changing_dimension_is_refused(scored, monkeypatch):
    monkeypatch.setattr(python_encoders, "CALL_TEXTS", 2)
    widths = iter([4, 5])
    with pytest.raises(
        EvaluationError, match=r"row 1, sentence2: encode\(\) returned vectors of 5 dimensions \(expected 4"
    ):
        scored(Given(lambda texts: np.ones((len(texts), next(widths)))))


def test_evaluate_accepts_set_names_and_reports_missing_sets():
    found = evaluate(Letters(), suite=["embedded:stsb/test", "stsb-mt/test"])
    assert found.scores.filter(metric="spearman")["n"].to_list() == [1379]
    assert list(found.missing) == ["stsb-mt/test"]
    found = evaluate(Letters(), suite=["embedded:stsb/test", "stsb-supervised"])
    assert "cannot be fine-tuned" in found.missing["stsb-supervised"]
    with pytest.raises(SourceError, match="all requested sets fine-tune the encoder"):
        evaluate(Letters(), suite=["stsb-supervised"])
    with pytest.raises(UnknownSuiteError, match="unknown suite or set"):
        evaluate(Letters(), suite=["stss"])
