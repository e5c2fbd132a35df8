"""Embeddings of the transfer sets to SentEval's figures."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

import polars as pl

from models.evaluation.config import BootstrapConfig
from models.evaluation.probe.config import ProbeConfig
from storage.refs import EmbeddingsRef, ScoresRef
from storage.schemas import SCORES
from tasks.cached import Work, stage
from tasks.labelled import LabelledSet, make_task
from tasks.machine import device_of, settle_threads
from tasks.show import progress_of, show_table
from tasks.vectors import Vectors, open_vectors

WITH_F1 = frozenset({"mrpc"})


@stage(ref=ScoresRef, version=2)
def score_transfer(
    work: Work,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[LabelledSet, ...],
    config: ProbeConfig,
    bootstrap: BootstrapConfig,
) -> None:
    """Train linear classifiers on frozen embeddings, as SentEval does and exactly; accuracies, and F1 for MRPC."""
    settle_threads(work.site)
    vectors, device = open_vectors(work.store, embeddings), device_of(work.site)
    rows = transfer_figures(sets, vectors, config, bootstrap, device, progress_of("probing"))
    named = rows.with_columns(model=pl.lit(model), seed=pl.lit(config.seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    work.draft.write(scores)
    show_table("transfer-table", scores.to_dicts(), f"Transfer tasks of {model}")


def transfer_figures(
    sets: Sequence[LabelledSet],
    vectors: Vectors,
    config: ProbeConfig,
    bootstrap: BootstrapConfig,
    device: str,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> pl.DataFrame:
    """Every figure of transfer sets, columns as `models.evaluation.probe.figures`' rows."""
    from models.evaluation.probe.figures import probe_rows
    from models.evaluation.probe.search import probe

    tasks = [make_task(labelled, vectors, config) for labelled in sets]
    rows = []
    for protocol in config.protocols:
        outcomes = probe(tasks, protocol, config, device=device, on_progress=on_progress)
        for task, found in zip(tasks, outcomes, strict=True):
            rows += probe_rows(task, found, protocol, bootstrap, f1=task.name in WITH_F1)
    return pl.DataFrame([asdict(row) for row in rows])
