"""Tables of a run's page: stages, and pairs that the encoder orders best and worst.

Shapes: N pairs of a scored set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bsl.models.evaluation.correlation import average_ranks
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.rendering.numbers import MISSING, sized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import EmbeddingsRef
    from bsl.tasks.corpus.evaluation_sets import ScoredSet

PAIRS: Final = 6


@dataclass(frozen=True)
class ComparedSet:
    """A set of scored pairs with the cosines of a run's systems.

    Attributes:
        source: the set.
        pairs: `sentence1`, `sentence2`, `score`; N rows.
        cosines: system → cosine of each pair, (N,).
    """

    source: ScoredSet
    pairs: pl.DataFrame
    cosines: Mapping[str, NDArray[np.float64]]


def stage_table(manifests: Sequence[Manifest], run: str, vectors: Mapping[str, EmbeddingsRef]) -> Table:
    """Return the artifacts behind a run with the time of each, and its share of the total.

    Args:
        manifests: the artifacts; cached ones count their original time.
        run: id of the run, which made the new ones.
        vectors: system → its vectors.
    """
    systems = {ref.key: system for system, ref in vectors.items()}
    total = sum(manifest.duration_s for manifest in manifests) or 1.0
    rows = []
    for manifest in manifests:
        origin = manifest.provenance
        model = origin.config.get("model")  # of other stages, the settings of a model
        inputs = dict.fromkeys(f"{entry.kind} {entry.key[:6]}" for entry in origin.inputs.values())
        rows.append(
            {
                "stage": (origin.stage or manifest.kind).replace("_", " "),
                "system": systems.get(manifest.key, model if isinstance(model, str) else None),
                "artifact": f"{manifest.kind}/{manifest.key[:12]}",
                "made from": ", ".join(inputs) or MISSING,
                "rows": manifest.rows,
                "size": sized(manifest.size),
                "seconds": f"{manifest.duration_s:,.1f}",
                "share": f"{100 * manifest.duration_s / total:.1f} %",
                "in this run": "made" if run and origin.run == run else "cached",
            }
        )
    return Table.of("Stages: the artifact and the time of each", rows)


def pair_tables(scored: ComparedSet, systems: Sequence[str]) -> Iterator[Table]:
    """Yield tables of the pairs that the last system ranks farthest from, and nearest to, their gold rank.

    Args:
        scored: the set.
        systems: the systems before and after training, or a single one.
    """
    gold = scored.pairs["score"].to_numpy()
    ranks = {system: _percentiles(scored.cosines[system]) for system in systems}
    gold_ranks = _percentiles(gold)
    error = np.abs(ranks[systems[-1]] - gold_ranks)
    # Break ties by length: longer texts are more informative.
    letters = scored.pairs.select(n=scored.pairs["sentence1"].str.len_chars()).to_series().to_numpy()
    worst = np.lexsort((-letters, -error))[:PAIRS]
    best = np.lexsort((-letters, np.round(error)))[:PAIRS]
    yield _pairs(f"{scored.source.name}: largest rank errors", scored, worst, gold_ranks, ranks)
    yield _pairs(f"{scored.source.name}: smallest rank errors", scored, best, gold_ranks, ranks)
    if len(systems) > 1:
        gain = np.abs(ranks[systems[0]] - gold_ranks) - error
        gained = np.argsort(-gain, kind="stable")[:PAIRS]
        yield _pairs(f"{scored.source.name}: largest improvements by training", scored, gained, gold_ranks, ranks)


def _percentiles(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return ranks scaled to [0, 100], (N,)."""
    scaled: NDArray[np.float64] = 100 * (average_ranks(values.astype(np.float64)) - 1) / max(len(values) - 1, 1)
    return scaled


def _pairs(
    title: str,
    scored: ComparedSet,
    chosen: NDArray[np.integer],
    gold_ranks: NDArray[np.float64],
    ranks: Mapping[str, NDArray[np.float64]],
) -> Table:
    roles = ("before", "after") if len(ranks) > 1 else ("encoder",)
    rows = []
    for number in chosen.tolist():
        row = scored.pairs.row(number, named=True)
        texts = {"sentence 1": row["sentence1"], "sentence 2": row["sentence2"], "gold": f"{row['score']:.2f}"}
        cosines = {
            f"cosine {role}": f"{scored.cosines[system][number]:.3f}" for role, system in zip(roles, ranks, strict=True)
        }
        last = list(ranks.values())[-1][number]
        rows.append({**texts, **cosines, "gold rank": f"{gold_ranks[number]:.0f}", "cosine rank": f"{last:.0f}"})
    return Table.of(f"{title}; ranks from 0 (least similar) to 100", rows)
