"""Rows of labels that trained an encoder are counted where they score it."""

import shutil
import warnings

import polars as pl
import pytest

import bsl
from bsl.flows.evaluation import evaluation
from bsl.models.views.annotated_pairs import scored_pairs
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CheckpointRef, PairsRef
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.evaluation.config import EvaluationSettings
from bsl.tasks.evaluation.taught_rows import notes_on
from bsl.tasks.figures import EvaluationFigures
from bsl.tasks.stage.run_context import RunContext

TEXTS = [f"The parcel number {number} came late." for number in range(60)]


def test_rows_whose_texts_trained_an_encoder_are_counted_unless_it_is_the_original(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site = RunContext(store="store", device="cpu")
    store = site.open_store()
    pl.DataFrame({"text": [f" {text[:-1]} ." for text in TEXTS], "label": ["a", "b", "c"] * 20}).write_csv("labels.csv")
    taught = pl.DataFrame({"sentence1": TEXTS[:20], "sentence2": TEXTS[5:25], "score": [0.0, 1.0] * 10})
    pairs = PairsRef(key=f"{1:064x}")
    with store.draft(pairs, Provenance(stage_version=1, config={})) as draft:
        others = taught.with_columns(sentence1=pl.Series(TEXTS[30:50]))
        draft.write(pl.concat([scored_pairs(taught, 1.0, "labels", 0), scored_pairs(others, 1.0, "stsb", 0)]))
    inputs = {"pairs": InputEntry(kind="pairs", key=pairs.key, digest=store.manifest(pairs).digest)}
    for number, adapted in ((2, True), (3, False)):
        with store.draft(
            CheckpointRef(key=f"{number:064x}"), Provenance(stage_version=1, config={}, inputs=inputs)
        ) as draft:
            shutil.copytree(embedded_path("bert-mini"), draft.folder / "encoder")
            draft.note({"adapted": adapted})
    trained, original = (f"checkpoint/{number:064x}" for number in (2, 3))
    labels, note = "labels:labels.csv", f"25 of the 60 rows of labels:labels.csv trained {trained}, so its score"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is said of other encoders and sets
        bsl.compare([original, "embedded:bert-mini"], labels, store="store")
    with pytest.warns(UserWarning, match=note):
        bsl.compare([original, trained], labels, store="store")
    with pytest.warns(UserWarning, match="25 of the 60 rows of labels:labels.parquet trained"):
        bsl.evaluate(bsl.Result(store, CheckpointRef(key=f"{2:064x}")), pl.read_csv("labels.csv"))
    page = evaluation.fn([trained], [labels], EvaluationSettings(bootstrap={"resamples": 100}), site)
    (told,) = store.manifest(page).figures_as(EvaluationFigures).notes
    assert told.startswith("25 of the 60 rows of labels:labels.csv trained checkpoint/0000")
    assert notes_on(site, trained, ["stsb/dev"]) == []
