"""An encoder is found by its checkpoint, its report or its folder."""

from datetime import UTC, datetime, timedelta

import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.storage.artifacts.garbage_collection import collectable
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CheckpointRef, ReportRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import ArtifactMissingError
from bsl.tasks.evaluation.config import EncoderOverrides
from bsl.tasks.evaluation.systems import find_encoder_system, find_encoder_systems
from bsl.tasks.stage.run_context import RunContext
from tests.hostile import made_long_ago
from tests.tiny_encoder import write_tiny

CHECKPOINT, REPORT = CheckpointRef(key=f"{7:064x}"), ReportRef(key=f"{8:064x}")


@pytest.fixture
def site(tmp_path):
    store = Store(str(tmp_path / "store"))
    made_from = Provenance(stage_version=1, config={})
    with store.draft(CHECKPOINT, made_from) as draft:
        config = EncoderConfig(model="tiny", pooling="cls", max_length=24)
        SentenceEncoder.load(write_tiny(tmp_path / "bare"), config).save(draft.folder / "encoder")
    digest = store.manifest(CHECKPOINT).digest
    entry = InputEntry(kind="checkpoint", key=CHECKPOINT.key, digest=digest)
    with store.draft(REPORT, Provenance(stage_version=1, config={}, inputs={"checkpoint": entry})) as draft:
        (draft.folder / "report.md").write_text("# A run\n")
    return RunContext(store=store.url)


@pytest.mark.parametrize("name", ["checkpoint/0000", "report/0000", str(CHECKPOINT), REPORT.path, "report/latest"])
def test_encoder_is_found_by_checkpoint_or_report_name(site, name):
    found = find_encoder_system(site, name, EncoderOverrides())
    assert found.encoder == CHECKPOINT
    assert (found.label, found.checkpoint) == (str(CHECKPOINT), CHECKPOINT.key)
    assert found.config.pooling == "cls"


@pytest.mark.parametrize(("name", "kept"), [("checkpoint/0000", [CHECKPOINT]), ("report/0000", [CHECKPOINT, REPORT])])
def test_used_encoder_survives_garbage_collection(site, name, kept):
    store, soon = site.open_store(), datetime.now(UTC) + timedelta(days=1)
    made_long_ago(store)
    assert len(collectable(store, timedelta(days=30), soon)) == 2
    find_encoder_system(site, name, EncoderOverrides())
    gone = {manifest.ref.path for manifest in collectable(store, timedelta(days=30), soon)}
    assert gone == {CHECKPOINT.path, REPORT.path} - {ref.path for ref in kept}


def test_bare_transformer_uses_requested_pooling_and_length(site, tmp_path):
    folder = str(tmp_path / "bare")
    assert find_encoder_system(site, folder, EncoderOverrides()).config.length == 64
    found = find_encoder_system(site, f"{folder}/", EncoderOverrides(pooling="cls", max_length=16))
    assert (found.config.pooling, found.config.max_length) == ("cls", 16)
    assert found.label == "/".join([*tmp_path.parts[-1:], "bare"])
    assert found.checkpoint.startswith("sha256:")


def test_system_label_has_precision_and_duplicate_labels_raise(site, tmp_path):
    folder = str(tmp_path / "bare")
    (found,) = find_encoder_systems(site, [folder], EncoderOverrides(), "bf16")
    assert found.label.endswith("bare (bf16)")
    with pytest.raises(ValueError, match="two models have the same name"):
        find_encoder_systems(site, [folder, f"{folder}/"], EncoderOverrides(), "fp32")


def test_missing_checkpoint_or_invalid_max_length_raises_an_error(site):
    with pytest.raises(ArtifactMissingError, match="matches nothing"):
        find_encoder_system(site, "checkpoint/ffff", EncoderOverrides())
    with pytest.raises(ValueError, match="max_length"):
        find_encoder_system(site, "checkpoint/0000", EncoderOverrides(max_length=0))
