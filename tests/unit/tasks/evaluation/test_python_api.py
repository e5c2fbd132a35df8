"""Any object with `encode` is scored like an encoder, and refused if its vectors are invalid."""

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig, ScoringConfig
from bsl.models.evaluation.signature import parse_signature
from bsl.storage.errors import SourceError
from bsl.tasks.embedding import python_encoders
from bsl.tasks.evaluation.kinds import UnknownSuiteError
from bsl.tasks.evaluation.python_api import evaluate
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import allow_any_rows

PAIRS = pl.DataFrame(
    {
        "sentence1": ["a cat sat", "a dog ran", "a cat sat"],
        "sentence2": ["a cat sits", "it rains", "a dog ran"],
        "score": [4.0, 0.5, 2.0],
    }
)
UNIQUE = ["a cat sat", "a dog ran", "a cat sits", "it rains"]
FEW = ScoringConfig(bootstrap=BootstrapConfig(resamples=100), probe=ProbeConfig(folds=3, protocols=("fast",)))


@pytest.fixture
def scored(declare):
    """Return a function that scores an object on a declared set of three pairs."""
    site = declare("mine", test=PAIRS)
    return lambda encoder: evaluate(encoder, ["mine/test"], site, FEW).scores


class Letters:
    """Letter counts: a real, if poor, encoder."""

    def __init__(self):
        self.calls: list[list[str]] = []

    def encode(self, texts):
        self.calls.append(texts)
        return np.array([[text.count(chr(97 + letter)) for letter in range(26)] for text in texts], dtype=np.float32)


def test_evaluate_embeds_each_unique_sentence_once_in_calls_of_bounded_size(scored, monkeypatch):
    encoder = Letters()
    scores = scored(encoder)
    assert encoder.calls == [UNIQUE]
    assert scores.filter(metric="spearman")["value"].item() == pytest.approx(1.0)
    assert scores["n"].unique().to_list() == [3]
    assert "|vectors:object Letters|" in scores["signature"][0]
    monkeypatch.setattr(python_encoders, "CALL_TEXTS", 3)
    encoder = Letters()
    assert scored(encoder).equals(scores)
    assert encoder.calls == [UNIQUE[:3], UNIQUE[3:]]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (lambda texts: np.ones((len(texts) + 1, 4)), r"mine test, row 1, sentence1: .*shape \(3, 4\) for 2 texts"),
        (lambda texts: np.ones(len(texts)), r"shape \(2,\) for 2 texts \(expected \(2, d\)"),
        (lambda texts: [[1.0] * (3 + (text == "a dog ran")) for text in texts], "is not a matrix"),
        (
            lambda texts: [[np.nan if text == "it rains" else 1.0] for text in texts],
            "mine test, row 2, sentence2: the vector of 'it rains' is not finite",
        ),
        (
            lambda texts: np.ones((len(texts), 4 + (texts[0] != "a cat sat"))),
            r"row 1, sentence2: encode\(\) returned vectors of 5 dimensions \(expected 4",
        ),
        (lambda texts: np.ones((len(texts), 4)), "mine test .*all 3 values"),
    ],
)
def test_invalid_encoder_output_error_names_dataset_and_row(scored, monkeypatch, vectors, message):
    monkeypatch.setattr(python_encoders, "CALL_TEXTS", 2)
    with pytest.raises(EvaluationError, match=message):
        scored(vectors)


@pytest.mark.parametrize(
    ("encoder", "suite", "error", "message"),
    [
        (Letters(), [], UnknownSuiteError, "the suite is empty, expected at least one set"),
        (Letters(), ["stsb-supervised"], SourceError, "all requested sets fine-tune the encoder"),
        (5, ["embedded:stsb/dev"], TypeError, "the encoder is 5, expected a function, or an object with encode"),
    ],
)
def test_evaluate_refuses_unknown_sets_and_an_object_without_encode(encoder, suite, error, message):
    with pytest.raises(error, match=message):
        evaluate(encoder, suite, RunContext())


def test_evaluate_reports_missing_and_fine_tuning_sets():
    found = evaluate(Letters(), ["embedded:stsb/test", "stsb-mt/test", "stsb-supervised"], RunContext())
    assert found.scores.filter(metric="spearman")["n"].to_list() == [1379]
    assert list(found.missing) == ["stsb-mt/test", "stsb-supervised"]
    assert "cannot be fine-tuned" in found.missing["stsb-supervised"]


ASKED = ["how many dogs ran ?", "where is the cat ?", "who sat here ?", "when did it rain ?", "what is rain ?", "why ?"]
CLASSES = ["NUM", "LOC", "HUM", "ENTY", "DESC", "ABBR"]


@pytest.fixture
def mirrored(site, tmp_path, monkeypatch):
    """A mirror with some rows of a single-sentence task and a pair task."""
    allow_any_rows(monkeypatch, "trec", "mrpc")
    texts = [f"{ASKED[row % 6]} {row}" for row in range(60)]
    others = [f"{ASKED[(row + row % 2) % 6]} {row}" for row in range(60)]
    same = [1 - row % 2 for row in range(60)]
    for name, rows in {
        "trec": pl.DataFrame({"text": texts, "coarse_label": CLASSES * 10}),
        "mrpc": pl.DataFrame({"sentence1": texts, "sentence2": others, "label": same}),
    }.items():
        (tmp_path / name).mkdir(parents=True)
        rows.write_parquet(tmp_path / name / "train.parquet")
        rows.head(30).write_parquet(tmp_path / name / "test.parquet")
    return site.model_copy(update={"mirror": str(tmp_path)})


def test_function_of_tensors_has_the_scores_of_all_kinds_under_its_name(mirrored):
    def encode(texts):
        return torch.tensor(Letters().encode(texts))

    scores = evaluate(encode, ("trec", "mrpc", "embedded:stsb/dev"), mirrored, FEW, "mUSE, large").scores
    assert {parse_signature(line)["vectors"] for line in scores["signature"]} == {"object mUSE, large"}
    assert scores.filter(dataset="trec", metric="accuracy", protocol="fast")["value"].item() >= 0.9
    assert scores.filter(dataset="mrpc", metric="f1", protocol="fast").height == 1
    assert scores.filter(dataset="stsb", metric="spearman").height >= 1
