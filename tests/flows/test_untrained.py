"""Untrained encoders run through the whole pipeline: word vectors named by path, a recipe without training."""

import numpy as np
import pytest
from prefect import flow

from bsl.flows.config import override
from bsl.flows.evaluation import evaluation
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.models.encoder.config import WordsConfig
from bsl.models.evaluation.signature import parse_signature
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef
from bsl.storage.errors import SourceError
from bsl.tasks.embedding.vectors import encoder_computation
from bsl.tasks.evaluation.config import EncoderOverrides, EvaluationSettings
from bsl.tasks.evaluation.systems import find_encoder_system
from bsl.tasks.stage.run_context import RunContext

WORDS = ["a", "man", "woman", "is", "playing", "the", "guitar", "dog", "running", "on", "in", "and", "of", ".", "two"]
SETS = ["embedded:stsb/test"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return RunContext(store=str(tmp_path_factory.mktemp("untrained") / "store"), device="cpu", threads=1)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    table = np.random.default_rng(0).normal(size=(len(WORDS), 8))
    path = tmp_path_factory.mktemp("vectors") / "toy.8d.txt"
    lines = [f"{word} {' '.join(f'{value:.4f}' for value in row)}\n" for word, row in zip(WORDS, table, strict=True)]
    path.write_text("".join(lines))
    return path


def candidate(site, name, reading):
    return flow(find_encoder_system, validate_parameters=False)(site, name, reading)


def test_word_vector_file_becomes_a_checkpoint(site, vectors):
    found = candidate(site, str(vectors), EncoderOverrides())
    assert isinstance(found.encoder, CheckpointRef)
    assert found.label.endswith("toy.8d.txt")
    folder = site.open_store().fetch(found.encoder) / ENCODER
    made = encoder_computation(folder, found.config, "fp32")
    assert (made["words"], made["case"], made["pool"], made["special"]) == ("treebank", "lower", "mean", False)
    other = candidate(site, str(vectors), EncoderOverrides(words=WordsConfig(split="whitespace", marks=False)))
    assert other.encoder != found.encoder
    folder = site.open_store().fetch(other.encoder) / ENCODER
    assert encoder_computation(folder, other.config, "fp32")["words"] == "whitespace without marks"


def test_equal_vector_files_share_an_artifact_and_missing_raises(site, vectors, tmp_path):
    copy = tmp_path / "elsewhere.txt"
    copy.write_bytes(vectors.read_bytes())
    assert (
        candidate(site, str(copy), EncoderOverrides()).encoder
        == candidate(site, str(vectors), EncoderOverrides()).encoder
    )
    with pytest.raises(SourceError, match="no such file, expected word vectors"):
        candidate(site, "glove.6B.300d.txt", EncoderOverrides())


def test_word_vector_scores_have_a_signature_with_tokenization(site, vectors):
    config = EvaluationSettings.model_validate({"bootstrap": {"resamples": 100}})
    scores = site.open_store().scan(evaluation([str(vectors)], SETS, config, site), "scores").collect()
    fields = parse_signature(scores["signature"][0])
    assert (fields["words"], fields["case"]) == ("treebank", "lower")
    assert scores["n"].max() == 1379


def test_untrained_recipe_reports_word_vectors_and_tfidf(site, vectors):
    changes = {
        "ingest": {"corpus": {"limit": 96}},
        "encoder": {"model": str(vectors)},
        "words": {"split": "punctuation"},
        "evaluation": {"sets": SETS, "bootstrap": {"resamples": 100}},
    }
    assert override(recipe("tiny-avg"), changes).phases == ()
    report = pipeline("tiny-avg", changes, site)
    scores = site.open_store().scan(report, "scores").collect()
    assert scores["model"].unique(maintain_order=True).to_list()[0] == "Unigram TF-IDF"
    assert {parse_signature(line).get("words") for line in scores["signature"]} == {None, "punctuation"}
