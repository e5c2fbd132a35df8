"""What a form of an encoder costs and how it scores: size, speed, STS-B of the package."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.assets.catalog import embedded_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from models.encoder.sentence_encoder import SentenceEncoder
    from tasks.serving.variants import Variant

    Vectors = NDArray[np.float32]

_PASSES: Final = 3
_ENOUGH_S: Final = 20.0  # after which no further pass is timed


def measured(name: str, place: str, path: Path, encoder: SentenceEncoder) -> Variant:
    """A form, timed on the sentences that it is scored on.

    Args:
        name: What the table calls it.
        place: Where it lies in the exported folder.
        path: The folder or graph there.
        encoder: Loaded from it.
    """
    from models.evaluation.correlation import cosine_scores
    from tasks.serving.variants import Variant

    texts, count = test_texts(), len(stsb("test"))
    encoder.encode(texts[:64])  # what is made at the first call is not timed
    passes: list[float] = []
    spent = 0.0
    for _ in range(_PASSES):
        began = time.perf_counter()
        vectors = encoder.encode(texts)
        took = time.perf_counter() - began
        passes.append(len(texts) / took)
        spent += took
        if spent > _ENOUGH_S:
            break
    cosines = cosine_scores(vectors[:count], vectors[count:])
    return Variant(name, place, _megabytes(path), encoder.width, tuple(passes), cosines)


def dev_scorer() -> tuple[list[str], Callable[[Vectors], float]]:
    """STS-B's dev sentences, and the Spearman that their vectors have."""
    from models.evaluation.correlation import cosine_scores, spearman

    rows = stsb("dev")
    gold, count = rows["score"].to_numpy(), len(rows)
    texts = [*rows["sentence1"], *rows["sentence2"]]
    return texts, lambda vectors: spearman(cosine_scores(vectors[:count], vectors[count:]), gold)


def test_texts() -> list[str]:
    """The sentences that forms are timed and scored on: STS-B's test set, all first ones before all second ones."""
    rows = stsb("test")
    return [*rows["sentence1"], *rows["sentence2"]]


def stsb(split: str) -> pl.DataFrame:
    """Scored pairs of STS-B in the package."""
    return pl.read_parquet(embedded_path("stsb") / f"{split}.parquet")


def _megabytes(place: Path) -> float:
    """Weights at a place: a graph, or all tensors of a folder and of its heads."""
    if place.is_file():
        return place.stat().st_size / 1e6
    heads = [path for path in place.glob("*/*.safetensors") if path.parent.name[0].isdigit()]
    return sum(path.stat().st_size for path in (*place.glob("*.safetensors"), *heads)) / 1e6
