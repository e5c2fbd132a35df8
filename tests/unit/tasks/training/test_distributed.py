"""Training with several processes gives the weights and losses of one process, and ends clearly when it must stop."""

import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import TrainingError
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.supervised_config import RegressionConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.training.snapshots import read_snapshot
from bsl.storage.artifacts.refs import PairsRef
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.training.distributed import train_together
from bsl.tasks.training.train import train
from bsl.tasks.training.worker import TrainingJob
from tests.corpora import publish
from tests.servers import children, is_alive
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

# Batch statistics, negatives from the whole batch, a momentum target; no dropout, which each process draws for itself.
# A larger ε: before batch normalisation a bias has only rounding noise as gradient; Adam with 1e-6 turns it into steps.
CONFIG = TrainingConfig(
    precision="fp32",
    objective=BSLConfig(k=2, momentum=0.9, target_norm="standardize", contrastive_weight=0.5),
    batch_size=6,
    epochs=4,
    lr=1e-2,
    eps=1e-3,
    eval_every=4,
    seed=3,
    collapse=None,
)
ROOT = Path(__file__).parents[4]
TOLERANCE = 5e-6  # for weights and losses after 8 steps in fp32: equal sums in another order (1e-6 seen)


@pytest.fixture
def arguments(site, tmp_path):
    ref = publish_pairs(site)
    start = resolve_model(str(write_tiny(tmp_path / "model", dropout=0.0)))
    encoder = EncoderConfig(model=start.identity, max_length=24)
    return {"pairs": ref, "start": start, "dev": None, "encoder": encoder, "config": CONFIG}


def publish_pairs(site):
    ref, fixed = PairsRef(key=64 * "1"), {"lang_1": pl.lit("en"), "lang_2": pl.lit("en"), "source": pl.lit("x")}
    score = pl.int_range(12) % 3 / 2
    texts = {"text_1": ORIGINALS + ORIGINALS + BACK_DE, "text_2": BACK_DE + BACK_FR + BACK_FR}
    frame = pl.DataFrame(texts).with_columns(
        **fixed, pair_id=pl.int_range(12), sentence_id=pl.int_range(12), label=None, score=score, group=None
    )
    return publish(site.open_store(), ref, frame)


def job_of(site, arguments, work, **fields):
    long = CONFIG.model_copy(update={"epochs": 1000, "eval_every": 10_000})
    return TrainingJob(site=site.model_copy(update=fields), work=work, **{**arguments, "config": long})


# 7 of 12 sentences differ in a batch, which is no multiple of two processes.
ONCE = RegressionConfig(anchor_weight=0.5, each_text_once=True)


@pytest.mark.slow
@pytest.mark.parametrize("objective", [CONFIG.objective, ONCE], ids=["bsl", "regression"])
def test_training_with_two_processes_gives_single_process_weights(site, arguments, tmp_path, objective):
    arguments["config"] = CONFIG.model_copy(update={"objective": objective})
    alone = read_snapshot(site.open_store().fetch(train(site, **arguments)) / "state")
    apart = site.model_copy(update={"store": str(tmp_path / "apart"), "processes": 2})
    publish_pairs(apart)
    store = apart.open_store()
    ref = train(apart, **arguments)
    together = read_snapshot(store.fetch(ref) / "state")
    for part in alone.tensors.keys() & {"online", "target", "predictor", "target_norm"}:
        for name, tensor in alone.tensors[part].items():
            difference = (together.tensors[part][name].double() - tensor.double()).abs().max()
            assert difference <= TOLERANCE, f"{part}.{name}: {difference}"
    for mine, theirs in zip(together.counters["log"], alone.counters["log"], strict=True):
        for name in ("loss", "grad_norm", "uniformity"):
            if theirs[name] is not None:
                assert mine[name] == pytest.approx(theirs[name], abs=TOLERANCE), name
    assert store.manifest(ref).figures["measured"]["pairs_per_s"] > 0


def test_batch_not_divisible_by_process_count_is_refused(site, arguments, tmp_path):
    with pytest.raises(TrainingError, match="batch of 6 pairs cannot be shared equally by 4"):
        train_together(job_of(site, arguments, tmp_path / "work", processes=4), lambda: False)


@pytest.mark.slow
def test_stopped_training_processes_save_a_snapshot(site, arguments, tmp_path):
    job = job_of(site, arguments, tmp_path / "work", processes=2, save_every=5, keep_snapshots=1)
    with pytest.raises(TrainingError, match=r"stopped on request after step .* of 2000\. Its state is saved") as told:
        train_together(job, should_stop=lambda: any(job.work.glob("step-*")))
    (saved,) = job.work.glob("step-*")
    assert f"after step {read_snapshot(saved).step} of" in str(told.value)


@pytest.mark.slow
def test_killed_command_leaves_no_training_process(site, arguments, tmp_path):
    """A surviving trainer would write to the same folder as those of the next run."""
    job = job_of(site, arguments, tmp_path / "work", processes=2, save_every=5)
    (tmp_path / "sent.json").write_text(job.model_dump_json(), encoding="utf-8")
    program = (
        "import sys; from pathlib import Path; from bsl.tasks.training.worker import TrainingJob; "
        "from bsl.tasks.training.distributed import train_together; "
        "train_together(TrainingJob.model_validate_json(Path(sys.argv[1]).read_text()), lambda: False)"
    )
    command = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "sent.json")], cwd=ROOT)
    try:
        while not any(job.work.glob("step-*")):
            assert command.poll() is None
            time.sleep(0.1)
        started = children(command.pid)
        assert len(started) == 3, "torchrun's agent and two trainers"
    finally:
        command.kill()
        command.wait()
    deadline = time.monotonic() + 90
    while left := [process for process in started if is_alive(process)]:
        assert time.monotonic() < deadline, f"{left} of {started} live"
        time.sleep(0.1)
