"""Tables of a run's page: stages, and pairs that the encoder orders best and worst.

Shapes: N pairs of a scored set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.evaluation.correlation import average_ranks
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.rendering.numbers import MISSING, sized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import EmbeddingsRef

PAIRS: Final = 6


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


def pair_tables(name: str, pairs: pl.DataFrame, cosines: Mapping[str, NDArray[np.float64]]) -> Iterator[Table]:
    """Yield tables of the pairs that the last system ranks farthest from, and nearest to, their gold rank.

    Args:
        name: name of the set.
        pairs: `sentence1`, `sentence2`, `score`; N rows.
        cosines: cosines of the pairs before and after training, or of a single system; (N,) each.
    """
    gold = _percentiles(pairs["score"].to_numpy())
    ranks = [_percentiles(values) for values in cosines.values()]
    error = np.abs(ranks[-1] - gold)
    # Break ties by length: longer texts are more informative.
    letters = pairs["sentence1"].str.len_chars().cast(pl.Int64).to_numpy()
    chosen = {
        "largest rank errors": np.lexsort((-letters, -error)),
        "smallest rank errors": np.lexsort((-letters, np.round(error))),
    }
    if len(ranks) > 1:
        chosen["largest improvements by training"] = np.argsort(error - np.abs(ranks[0] - gold), kind="stable")
    roles = ("before", "after") if len(ranks) > 1 else ("encoder",)
    for title, order in chosen.items():
        rows = [
            {
                "sentence 1": pairs["sentence1"][row],
                "sentence 2": pairs["sentence2"][row],
                "gold": f"{pairs['score'][row]:.2f}",
                **{f"cosine {role}": f"{one[row]:.3f}" for role, one in zip(roles, cosines.values(), strict=True)},
                "gold rank": f"{gold[row]:.0f}",
                "cosine rank": f"{ranks[-1][row]:.0f}",
            }
            for row in order[:PAIRS].tolist()
        ]
        yield Table.of(f"{name}: {title}; ranks from 0 (least similar) to 100", rows)


def _percentiles(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return ranks scaled to [0, 100], (N,)."""
    scaled: NDArray[np.float64] = 100 * (average_ranks(values.astype(np.float64)) - 1) / max(len(values) - 1, 1)
    return scaled
