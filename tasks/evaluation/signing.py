"""What the signature of a figure says of its data, its vectors and the installed packages."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from models.evaluation.signature import rows_digest, signature
from storage.manifest import installed_versions
from tasks.evaluation.sets import rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from models.encoder.config import EncoderConfig
    from tasks.evaluation.sets import EvaluationSet

_WHOLE = "all"  # the subset of a figure over all of them
_ABSENT = "not installed"


def encoder_made(folder: Path, config: EncoderConfig, dtype: str) -> dict[str, JsonValue]:
    """How an encoder makes vectors.

    Args:
        folder: the encoder's; decides whether its tokenizer adds special tokens, which a static table's does not.
        config: pooling, length and casing.
        dtype: `fp32` or `bf16`.
    """
    from models.encoder.saved import read_saved, settled  # imports transformers

    saved = read_saved(folder)
    config = settled(saved, config)
    words: dict[str, JsonValue] = {"words": saved.words.spelled} if saved.words else {}
    lower = config.lower_case or (saved.words is not None and saved.words.case == "lower")
    return {
        "vectors": "encoder",
        "pool": config.pooling,
        "len": config.length,
        "special": saved.backbone.kind == "Transformer",
        "norm": config.normalize,
        **words,
        "case": "lower" if lower else "kept",
        "dtype": dtype,
        "prompt": config.prompt or None,
        **versions_of("torch", "transformers"),
    }


def versions_of(*packages: str) -> dict[str, str]:
    """Package → its version without the build (`+cpu`), which says which machine it is for."""
    installed = installed_versions()
    return {name: installed[name].partition("+")[0].replace(_ABSENT, "unknown") for name in packages}


def signed(
    figures: pl.DataFrame, data: Mapping[tuple[str, str], str], made: Mapping[str, object], **by: object
) -> pl.DataFrame:
    """Figures with the column `signature`.

    Args:
        figures: rows with dataset, subset, split, metric and protocol.
        data: data set and split of the rows → digest of what was scored, as `digests`.
        made: fields that say how the vectors were made.
        by: fields of the kind: what a figure is computed by.
    """
    version = versions_of("bsl-pipeline")["bsl-pipeline"]
    lines = [
        signature(
            {
                "set": "/".join(part for part in (row["dataset"], row["split"], row["subset"]) if part != _WHOLE),
                "metric": row["metric"],
                "protocol": row["protocol"],
                **by,
                "data": data[row["dataset"], row["split"]],
                **made,
                "bsl": version,
            }
        )
        for row in figures.iter_rows(named=True)
    ]
    return figures.with_columns(signature=pl.Series(lines, dtype=pl.String))


def digests(figures: pl.DataFrame, sets: Sequence[EvaluationSet]) -> dict[tuple[str, str], str]:
    """Data set and split of figures → digest of the set behind them.

    Two splits of one data set may be two sets; a split that names no rows of its own stands for the whole set.
    """
    places = figures.select("dataset", "split").unique(maintain_order=True).rows()
    return {(dataset, split): digest_of(_behind(dataset, split, sets)) for dataset, split in places}


@lru_cache(maxsize=64)
def digest_of(wanted: EvaluationSet) -> str:
    """Digest of all rows of a set, split by split.

    Raises:
        SourceError: as `rows_of`.
    """
    return rows_digest((split, rows.iter_rows()) for split, rows in rows_of(wanted).items())


def _behind(dataset: str, split: str, sets: Sequence[EvaluationSet]) -> EvaluationSet:
    own = [wanted for wanted in sets if wanted.dataset == dataset]
    return next((wanted for wanted in own if split in rows_of(wanted)), own[0])
