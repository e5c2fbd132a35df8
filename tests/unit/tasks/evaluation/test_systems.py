"""An encoder is found by its checkpoint, its report or its folder."""

from datetime import UTC, datetime, timedelta

import pytest

from bsl.models.encoder.config import EncoderConfig, EncoderOverrides
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.storage.artifacts.garbage_collection import collectable
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import CheckpointRef, ReportRef
from bsl.tasks.evaluation.systems import find_encoder_system, find_encoder_systems
from tests.corpora import publish
from tests.hostile import made_long_ago
from tests.tiny_encoder import write_tiny

CHECKPOINT, REPORT = CheckpointRef(key=f"{7:064x}"), ReportRef(key=f"{8:064x}")
MONTH = timedelta(days=30)


@pytest.fixture
def stored(site, tmp_path):
    """Return a run context with an encoder of [CLS] pooling as checkpoint, and the report of its run."""
    store = site.open_store()
    with store.draft(CHECKPOINT, Provenance(stage_version=1, config={})) as draft:
        config = EncoderConfig(model="tiny", pooling="cls", max_length=24)
        SentenceEncoder.load(write_tiny(tmp_path / "bare"), config).save(draft.folder / "encoder")
    publish(store, REPORT, inputs={"checkpoint": CHECKPOINT}, page="# A run")
    return site


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("checkpoint/0000", [CHECKPOINT]),
        (str(CHECKPOINT), [CHECKPOINT]),
        ("report/0000", [CHECKPOINT, REPORT]),
        ("report/latest", [CHECKPOINT, REPORT]),
    ],
)
def test_encoder_is_found_by_checkpoint_or_report_and_survives_garbage_collection(stored, name, used):
    store, soon = stored.open_store(), datetime.now(UTC) + timedelta(days=1)
    made_long_ago(store)
    assert len(collectable(store, MONTH, soon)) == 2
    found = find_encoder_system(stored, name, EncoderOverrides())
    assert (found.encoder, found.label, found.checkpoint) == (CHECKPOINT, str(CHECKPOINT), CHECKPOINT.key)
    assert found.config.pooling == "cls"
    gone = {manifest.ref.path for manifest in collectable(store, MONTH, soon)}
    assert gone == {CHECKPOINT.path, REPORT.path} - {ref.path for ref in used}


def test_folder_is_named_by_its_last_parts_and_two_of_one_name_are_refused(stored, tmp_path):
    folder = str(tmp_path / "bare")
    found = find_encoder_system(stored, f"{folder}/", EncoderOverrides())
    assert found.config.length == 64
    assert found.label == f"{tmp_path.name}/bare"
    assert found.checkpoint.startswith("sha256:")
    (found,) = find_encoder_systems(stored, [folder], EncoderOverrides(), "bf16")
    assert found.label.endswith("bare (bf16)")
    with pytest.raises(ValueError, match="two models have the same name"):
        find_encoder_systems(stored, [folder, f"{folder}/"], EncoderOverrides(), "fp32")
