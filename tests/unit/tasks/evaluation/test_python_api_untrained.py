"""Untrained systems on SentEval's tasks and AFS: encoders of other libraries as objects, and TF-IDF."""

import csv

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn

from bsl.models.encoder.tfidf import TfIdf
from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig, ScoringConfig
from bsl.models.evaluation.signature import parse_signature
from bsl.tasks.corpus.evaluation_sets import unique_sentences
from bsl.tasks.embedding.vectors import Vectors
from bsl.tasks.evaluation.kinds import available
from bsl.tasks.evaluation.python_api import evaluate
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import allow_any_rows

SUITE = ("trec", "mrpc", "afs", "embedded:stsb/dev")
DRAWS, PROBE = BootstrapConfig(resamples=100), ProbeConfig(folds=3, protocols=("fast",))
ASKED = ["how many dogs ran ?", "where is the cat ?", "who sat here ?", "when did it rain ?", "what is rain ?", "why ?"]
CLASSES = ["NUM", "LOC", "HUM", "ENTY", "DESC", "ABBR"]
ARGUMENTS = ["guns kill people", "guns protect people", "a law stops guns", "people want a law", "it is a right"]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A mirror with some rows of a single-sentence task, a pair task, and AFS."""
    allow_any_rows(monkeypatch, "trec", "mrpc")
    mirror = tmp_path / "mirror"
    texts = [f"{ASKED[row % 6]} {row}" for row in range(60)]
    questions = pl.DataFrame({"text": texts, "coarse_label": CLASSES * 10})
    pairs = pl.DataFrame(
        {
            "sentence1": texts,
            "sentence2": [f"{ASKED[(row + row % 2) % 6]} {row}" for row in range(60)],
            "label": [1 - row % 2 for row in range(60)],
        }
    )
    for name, rows in {"trec": questions, "mrpc": pairs}.items():
        (mirror / name).mkdir(parents=True)
        rows.write_parquet(mirror / name / "train.parquet")
        rows.head(30).write_parquet(mirror / name / "test.parquet")
    (mirror / "afs").mkdir()
    for topic in ("GC", "GM", "DP"):
        records = [
            [str(row / 2), *"abcdefgh", ARGUMENTS[row % 5], f"{ARGUMENTS[row * 3 % 5]} {topic}"] for row in range(8)
        ]
        with (mirror / "afs" / f"ArgPairs_{topic}.csv").open("w", encoding="iso-8859-1", newline="") as file:
            csv.writer(file).writerows([[f"c{number}" for number in range(11)], *records])
    return RunContext(store=str(tmp_path / "store"), mirror=str(mirror), device="cpu", threads=1)


class InferSentLike:
    """A BiLSTM over word vectors with max pooling and `encode(sentences, …)`, like InferSent."""

    def __init__(self, width=16):
        torch.manual_seed(0)
        self.words = nn.Embedding(997, width)
        self.network = nn.LSTM(width, width, bidirectional=True, batch_first=True)

    def encode(self, sentences, bsize=64, tokenize=False):
        with torch.no_grad():
            return np.stack([self._one(sentence.split()) for sentence in sentences])

    def _one(self, words):
        ids = torch.tensor([[sum(word.encode()) * len(word) % 997 for word in words]])
        return self.network(self.words(ids))[0].max(dim=1).values[0].numpy()


class UseLike:
    """A deep averaging network that is called directly and returns a tensor, like the Universal Sentence Encoder."""

    def __init__(self, width=16):
        torch.manual_seed(1)
        self.words = nn.EmbeddingBag(997, width, mode="mean")
        self.network = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    @torch.no_grad()
    def __call__(self, sentences):
        bags = [[sum(word.encode()) * len(word) % 997 for word in sentence.split()] for sentence in sentences]
        starts = np.cumsum([0] + [len(bag) for bag in bags[:-1]])
        words = torch.tensor([word for bag in bags for word in bag])
        return self.network(self.words(words, torch.from_numpy(starts)))


def figures(scores):
    return {(row["dataset"], row["subset"], row["metric"], row["protocol"]): row["value"] for row in scores.to_dicts()}


@pytest.mark.parametrize(("style", "name"), [(InferSentLike, None), (UseLike, None), (UseLike, "mUSE, large")])
def test_encoder_objects_of_other_libraries_have_all_scores(site, style, name):
    scores = evaluate(style(), SUITE, site, DRAWS, PROBE, name).scores
    assert set(scores["dataset"]) == {"trec", "mrpc", "afs", "stsb"}
    named = {parse_signature(line)["vectors"] for line in scores["signature"]}
    assert named == {f"object {name or style.__name__}"}
    found = figures(scores)
    assert found["trec", "all", "accuracy", "fast"] >= 0.9  # the six questions use different words
    assert ("mrpc", "all", "f1", "fast") in found
    assert ("afs", "mean", "spearman", "unsupervised") in found


def test_function_encoder_is_labelled_by_its_name(site):
    def letters(texts):
        return [[text.count(letter) for letter in "aeiou"] + [1] for text in texts]

    scores = evaluate(letters, ["trec"], site, DRAWS, PROBE).scores
    assert parse_signature(scores["signature"][0])["vectors"].endswith("letters")


def test_sparse_and_dense_tfidf_have_equal_scores(site):
    found = available(site, SUITE[:3])
    sentences = unique_sentences(found.embedded())
    texts = sentences["text"].to_list()
    table = TfIdf([texts]).vectors(texts)
    rows = dict(zip(sentences["sentence_id"].to_list(), range(len(texts)), strict=True))
    sparse = Vectors("tf-idf", rows, {"vectors": "tfidf"}, table)
    ours = pl.concat(
        [
            kind.figures(sets, sparse, ScoringConfig(bootstrap=DRAWS, probe=PROBE), "cpu")
            for kind, sets in found.frozen()
        ],
        how="diagonal_relaxed",
    )
    dense = dict(zip(texts, table.toarray(), strict=True))
    theirs = evaluate(lambda given: [dense[text] for text in given], SUITE[:3], site, DRAWS, PROBE).scores
    assert figures(ours).keys() == figures(theirs).keys()
    for place, value in figures(theirs).items():
        assert figures(ours)[place] == pytest.approx(value, abs=1e-6), place
