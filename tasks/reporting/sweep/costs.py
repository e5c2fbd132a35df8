"""Costs of a sweep's systems, and faults: runs without figures, collapsed vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from storage.artifacts.schemas import COSTS
from tasks.training.step_timing import seconds_a_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.evaluation.sweep import Ranking
    from storage.artifacts.refs import CheckpointRef, CorpusRef, PaceRef
    from storage.artifacts.store import Store
    from tasks.reporting.sweep.system import SweepSystem

_COLLAPSED_RANK, _COLLAPSED_STD = 2.0, 0.01  # as `models.training.config.CollapseConfig`


def faults_of(store: Store, systems: Sequence[SweepSystem]) -> dict[str, str]:
    """Return label → why runs of a system have no figures, or that its vectors collapsed."""
    found = {one.label: "; ".join(one.faults) or _collapse(store, one.checkpoints) for one in systems}
    return {label: fault for label, fault in found.items() if fault}


def cost_table(store: Store, systems: Sequence[SweepSystem], corpus: CorpusRef, ranked: Ranking) -> pl.DataFrame:
    """Return the table `costs`: steps and seconds of each system, and how far it is behind the best.

    Args:
        store: store of the artifacts.
        systems: in the order of the table.
        corpus: the sentences that were translated for views.
        ranked: the best system.
    """
    sentences = store.manifest(corpus).rows
    rows = []
    for system in systems:
        behind, refs = ranked.behind.get(system.label), system.checkpoints
        seconds = sum(_translation_seconds(store, memory) for memory in system.translators) * sentences
        rows.append(
            {
                "label": system.label,
                "steps": system.steps or None,
                "seconds": _training_seconds(store, refs, system.steps, system.pace),
                "translation_seconds": seconds if system.translators else None,
                "behind": behind and behind.value,
                "behind_low": behind and behind.ci_low,
                "behind_high": behind and behind.ci_high,
                "behind_p": behind and behind.p_value,
                "checkpoint": refs[0].key if refs else None,
            }
        )
    return pl.DataFrame(rows, schema=COSTS)


def _training_seconds(store: Store, refs: Sequence[CheckpointRef], steps: int, pace: PaceRef | None) -> float | None:
    """Return the seconds of one run's steps, at its own measured rate, else at the pace timed before."""
    if refs:
        manifest = store.manifest(refs[0])
        measured, config = manifest.figures.get("measured"), manifest.provenance.config.get("config")
        if isinstance(measured, dict) and isinstance(config, dict):
            rate, batch = measured["pairs_per_s"], config["batch_size"]
            if isinstance(rate, int | float) and isinstance(batch, int) and rate > 0:
                return steps * batch / rate
    return steps * seconds_a_step(store, pace) if pace else None


def _translation_seconds(store: Store, memory: str) -> float:
    """Return a translator's mean seconds per sentence, over all its translations."""
    parts = [store.manifest(ref) for ref in store.refs(memory)]
    seconds = [part.figures.get("seconds") for part in parts]
    total = sum(value for value in seconds if isinstance(value, int | float))
    return total / max(1, sum(part.rows for part in parts))


def _collapse(store: Store, refs: Sequence[CheckpointRef]) -> str | None:
    """Return the step and rank of the first evaluation with collapsed vectors; None without one."""
    for ref in refs:
        if "training_log" not in store.manifest(ref).tables:
            continue
        log = store.scan(ref, "training_log").filter(pl.col("effective_rank").is_not_null()).collect()
        start = log.row(0, named=True)
        gone = log.filter(
            (pl.col("effective_rank") < min(_COLLAPSED_RANK, start["effective_rank"]))
            | (pl.col("std") < min(_COLLAPSED_STD, start["std"]))
        )
        if gone.height:
            row = gone.row(0, named=True)
            return f"collapsed at step {row['step']}: effective rank {row['effective_rank']:.1f}"
    return None
