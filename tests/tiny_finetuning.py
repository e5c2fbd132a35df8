"""Stages that fine-tune a tiny encoder, for tests that start, kill and repeat them.

As a program, `python -m tests.tiny_finetuning FOLDER KIND` runs the stage of that kind (`stsb`, `afs`, or `stsb-cross`
for a cross-encoder) with a snapshot after every step, in the store `FOLDER/store`.
"""

import sys
from pathlib import Path

import polars as pl

from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.training.config import AFS_CONFIG, STSB_CONFIG, STSB_CROSS_CONFIG
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.readers.benchmarks.afs import TOPICS
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.evaluation.afs import find_afs_set
from bsl.tasks.evaluation.finetuning.afs import predict_afs
from bsl.tasks.evaluation.finetuning.finetune import FineTuning
from bsl.tasks.evaluation.finetuning.sts import score_supervised
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

FIRST = ORIGINALS * 3
SECOND = BACK_DE + BACK_DE[1:] + BACK_DE[:1] + BACK_FR
GOLD = [5.0] * 4 + [0.0, 0.5, 1.0, 1.5] + [4.5] * 4
# Enough steps to kill the run between them: 24 and 12.
STSB = STSB_CONFIG.model_copy(update={"batch_size": 512, "epochs": 2, "lr": 3e-3})
CROSS = STSB_CROSS_CONFIG.model_copy(update={"batch_size": 512, "epochs": 2, "lr": 3e-3})
AFS = AFS_CONFIG.model_copy(update={"epochs": 1, "lr": 3e-3})
NETWORK = EncoderConfig(model="tiny", max_length=24)


def prepare(folder: Path) -> Path:
    """Write the encoder, STS-B with its declared numbers of pairs, and the three files of AFS."""
    write_tiny(folder / "tiny")
    (folder / "mirror" / "stsb").mkdir(parents=True)
    frame = pl.DataFrame({"sentence1": FIRST, "sentence2": SECOND, "score": GOLD})
    for split, pairs in DATASETS["stsb"].rows.items():
        repeated = frame[[row % frame.height for row in range(pairs)]]
        repeated.write_parquet(folder / "mirror" / "stsb" / f"{split}.parquet")
    (folder / "mirror" / "afs").mkdir()
    for topic in TOPICS:
        rows = [[score, *"abcdefgh", *texts] for score, *texts in zip(GOLD, FIRST, SECOND, strict=True)]
        pl.DataFrame(8 * rows, orient="row").write_csv(folder / "mirror" / "afs" / f"ArgPairs_{topic}.csv")
    return folder


def run(folder: Path, store: str, kind: str) -> tuple[RunContext, ArtifactRef]:
    """Run a stage in its own store; return the context and the artifact."""
    mirror = str(folder / "mirror")
    site = RunContext(store=str(folder / store), mirror=mirror, device="cpu", threads=1, save_every=1, keep_snapshots=2)
    config = {"afs": AFS, "stsb-cross": CROSS}.get(kind, STSB)
    tuning = FineTuning(encoder=resolve_model(str(folder / "tiny")), network=NETWORK, config=config)
    common = {"tuning": tuning, "seed": 1}
    if kind == "afs":
        arguments = find_afs_set(site)
        fold = {"arguments": arguments, "protocol": "cross-topic", "fold": 0}
        return site, predict_afs(site, **common, **fold)
    sets = tuple(resolve_scored_set(site, f"stsb/{split}") for split in ("train", "dev", "test"))
    task = {"model": "tiny", "checkpoint": "", "sets": sets, "bootstrap": BootstrapConfig(resamples=100)}
    return site, score_supervised(site, **common, **task)


if __name__ == "__main__":
    run(Path(sys.argv[1]), "store", sys.argv[2])
