"""mteb opens an exported folder, and its figure on STS-B equals ours: `pip install mteb` first."""

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.flows.evaluation import evaluation
from bsl.storage.artifacts.store import Store
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.evaluation.config import EvaluationSettings
from bsl.tasks.stage.run_context import RunContext

ENCODER, SET = "embedded:bert-mini", "embedded:stsb/test"
PLACES = 1e-4  # a hundredth of a point: the vectors are equal up to rounding


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # from mteb: names that sentence-transformers renamed, superseded tasks
def test_mteb_score_of_an_exported_folder_equals_ours(tmp_path, capsys):
    mteb = pytest.importorskip("mteb", minversion="2")
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

    folder, site = str(tmp_path / "encoder"), RunContext(store=str(tmp_path / "store"), device="cpu")
    assert main(["export", ENCODER, folder, "--store", site.store, "--device", "cpu"]) == 0
    ref = evaluation([ENCODER], [SET], EvaluationSettings(precision="fp32"), site)
    ours = Store(site.store).scan(ref, "scores").filter(metric="spearman", protocol="all").collect()["value"]

    task = mteb.get_task("STSBenchmark")
    rows = pl.read_parquet(embedded_path("stsb") / "test.parquet", columns=["sentence1", "sentence2", "score"])
    task.dataset, task.data_loaded = {"test": Dataset.from_dict(rows.to_dict(as_series=False))}, True  # not the Hub's
    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    found = mteb.evaluate(model, task, cache=None, co2_tracker=False)
    assert ours.to_list() == [pytest.approx(found.task_results[0].get_score(), abs=PLACES)]
