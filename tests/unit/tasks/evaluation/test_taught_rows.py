"""Rows of labels that trained an encoder are counted where they score it."""

import polars as pl

from bsl.models.views.annotated_pairs import scored_pairs
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CheckpointRef, PairsRef
from bsl.tasks.evaluation.taught_rows import notes_on
from bsl.tasks.stage.run_context import RunContext

TEXTS = [f"The parcel number {number} came late." for number in range(60)]


def test_rows_whose_texts_trained_an_encoder_are_counted_unless_it_is_the_original(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    site = RunContext(store="store", device="cpu")
    store = site.open_store()
    pl.DataFrame({"text": TEXTS, "label": ["a", "b", "c"] * 20}).write_csv("labels.csv")
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
            (draft.folder / "encoder").write_text("")
            draft.note({"adapted": adapted})
    trained, original = (f"checkpoint/{number:064x}" for number in (2, 3))
    (note,) = notes_on(site, [trained, original, "embedded:bert-mini"], ["labels:labels.csv", "stsb/dev"])
    assert note.startswith(f"25 of the 60 rows of labels:labels.csv trained {trained}, so its score there tells ")
    assert notes_on(site, [trained], ["stsb/dev"]) == []
