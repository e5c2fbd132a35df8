"""A resumed training run equals an uninterrupted one to the bit, however it was interrupted."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import DamagedSnapshotError, InterruptedRunError, ResumeError
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.training.snapshots import newest_snapshot, read_snapshot, save_snapshot, write_snapshot
from tests.exports import library_vectors
from tests.tiny_encoder import ORIGINALS, write_tiny
from tests.tiny_training import CONFIG, OBJECTIVE_CONFIGS, STEPS, run

SMALL = {"k": 2, "target_norm": "center", "momentum": 0.9}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("model"), layers=1)


@pytest.fixture(scope="module")
def undisturbed(folder, tmp_path_factory):
    result = run(folder)
    write_snapshot(out := tmp_path_factory.mktemp("undisturbed"), result.state)
    return result, {path.name: path.read_bytes() for path in out.iterdir()}


def assert_same(result, undisturbed, out):
    expected, files = undisturbed
    write_snapshot(out, result.state)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files
    assert result.log.equals(expected.log)
    assert (result.best_step, result.best_dev) == (expected.best_step, expected.best_dev)
    torch.testing.assert_close(result.encoder.state_dict(), expected.encoder.state_dict(), rtol=0, atol=0)


def stop_at(*steps):
    count = iter(range(1, 1000))
    return lambda: next(count) in steps


def test_run_stopped_at_every_step_reaches_the_same_result(folder, undisturbed, tmp_path):
    for step in range(1, STEPS):
        with pytest.raises(InterruptedRunError, match=f"after step {step} of {STEPS}"):
            run(folder, work=tmp_path / "work", should_stop=lambda: True)
    assert_same(run(folder, work=tmp_path / "work", should_stop=lambda: True), undisturbed, tmp_path / "out")


OBJECTIVES = {name: config() for name, config in OBJECTIVE_CONFIGS.items() if name != "bsl"} | {
    "BSL+": BSLConfig(contrastive_weight=0.1, target_dropout=True),
    "distil with a queue": DistilConfig(queue=3),
    "distil with a projection": DistilConfig(loss="vectors", projection="dropped"),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_resumes_to_the_same_result_and_exports_its_encoder(folder, tmp_path, name):
    objective = OBJECTIVES[name]
    objective = objective.model_copy(update=SMALL if hasattr(objective, "momentum") else {})
    bias = {"bias_correction": name != "isbert"}  # as released
    config = CONFIG.model_copy(update={"objective": objective, "epochs": 3, **bias})
    whole = run(folder, config)
    with pytest.raises(InterruptedRunError):
        run(folder, config, work=tmp_path, should_stop=stop_at(3))  # in the second epoch
    resumed = run(folder, config, work=tmp_path)
    assert resumed.log.equals(whole.log)
    torch.testing.assert_close(resumed.state.tensors, whole.state.tensors, rtol=0, atol=0)
    assert (whole.log["momentum"].drop_nulls().len() > 0) == hasattr(objective, "momentum")
    start = SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24))
    made = start.with_network(resumed.encoder)
    made.save(tmp_path / "out")
    vectors = made.encode(ORIGINALS)
    assert np.abs(library_vectors(tmp_path / "out", ORIGINALS) - vectors).max() <= 1e-5
    assert vectors.shape[1] != start.width or np.abs(vectors - start.encode(ORIGINALS)).max() > 1e-4


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"save_every": 2, "keep": 3}, [8, 10, 12]),
        ({"save_every": 1000, "save_minutes": 1e-9, "keep": 100}, range(1, STEPS + 1)),
    ],
)
def test_snapshots_are_saved_by_steps_or_minutes_and_old_ones_deleted(folder, tmp_path, options, steps):
    run(folder, work=tmp_path, **options)
    assert sorted(path.name for path in tmp_path.glob("step-*")) == [f"step-{n:08d}" for n in steps]


@pytest.fixture(scope="module")
def stopped(folder, tmp_path_factory):
    """Return the folder of a run that was stopped after step 7."""
    work = tmp_path_factory.mktemp("stopped")
    with pytest.raises(InterruptedRunError):
        run(folder, work=work, save_every=2, should_stop=stop_at(7))
    return work


@pytest.mark.parametrize("damage", ["flip", "cut", "lost"])
def test_damaged_snapshot_is_removed_and_the_run_resumes(folder, undisturbed, stopped, tmp_path, damage, caplog):
    work = shutil.copytree(stopped, tmp_path / "work")
    file = work / "step-00000007" / "optimizer.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    if damage == "lost":
        file.unlink()
    else:
        file.write_bytes(content if damage == "flip" else content[:100])
    assert_same(run(folder, work=work), undisturbed, tmp_path / "out")
    assert "removing a damaged snapshot" in caplog.text


@pytest.mark.parametrize("head", ["", "null", "{}", '{"format": 3, "files": {}}'])
def test_incomplete_state_json_raises_damaged_snapshot_error(tmp_path, head):
    (tmp_path / "state.json").write_text(head)
    with pytest.raises(DamagedSnapshotError, match="not a complete snapshot"):
        read_snapshot(tmp_path)


def test_snapshot_of_another_run_is_refused_and_not_deleted(folder, stopped, tmp_path):
    work = shutil.copytree(stopped, tmp_path / "work")
    with pytest.raises(ResumeError, match=r"step-00000007: the snapshot \(step 7\) is of another run"):
        run(folder, CONFIG.model_copy(update={"lr": 2e-2}), work=work)
    assert run(folder, work=work).steps == STEPS


def test_temporarily_unreadable_snapshot_is_not_deleted(undisturbed, tmp_path):
    state = undisturbed[0].state
    saved = save_snapshot(tmp_path, state, keep=1)
    tensors = saved / "online.safetensors"
    kept = tensors.rename(tmp_path / "kept")
    tensors.symlink_to(tensors)  # ELOOP: a temporary error, like a lost mount or too many open files
    with pytest.raises(OSError, match="symbolic links"):
        newest_snapshot(tmp_path, state.fingerprint)
    kept.replace(tensors)
    assert newest_snapshot(tmp_path, state.fingerprint).step == state.step


def test_concurrent_saves_to_a_folder_leave_a_valid_snapshot(undisturbed, tmp_path):
    state = undisturbed[0].state
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: save_snapshot(tmp_path / "work", state, keep=2), range(12)))
    found = newest_snapshot(tmp_path / "work", state.fingerprint)
    assert found is not None
    assert found.step == state.step
    assert [path.name for path in (tmp_path / "work").iterdir()] == [f"step-{state.step:08d}"]


def test_newer_snapshot_format_is_refused_and_not_deleted(folder, undisturbed, tmp_path):
    saved = save_snapshot(tmp_path, undisturbed[0].state, keep=1)
    head = saved / "state.json"
    head.write_text(head.read_text().replace('"format": 3', '"format": 4'))
    with pytest.raises(ResumeError, match="snapshot format 4, expected 3"):
        read_snapshot(saved)
    with pytest.raises(ResumeError, match="Resume with the version that wrote it"):
        run(folder, work=tmp_path)
    assert saved.is_dir()
