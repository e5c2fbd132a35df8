"""Sentence pairs of several languages with English, split so that held-out pairs share no side with training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from models.pretraining.texts import fingerprint


@dataclass(frozen=True)
class ParallelSplit:
    """Pairs by language: frames with the columns `en` and `other`."""

    train: dict[str, pl.DataFrame]
    held: dict[str, pl.DataFrame]


def split_pairs(pairs: dict[str, pl.DataFrame], held_out: int, seed: int) -> ParallelSplit:
    """Hold pairs out of every language; no sentence of theirs, on either side, is in any language's training pairs.

    Args:
        pairs: By language, frames with the columns `en` and `other`.
        held_out: Pairs to hold out of each language (at most a twelfth of it), each with another English side.
        seed: Decides the draw.

    Returns:
        Both parts; sentences are compared by letters and digits alone.
    """
    marked = {language: _mark(frame) for language, frame in sorted(pairs.items())}
    held: dict[str, pl.DataFrame] = {}
    for number, (language, frame) in enumerate(marked.items()):
        unique = frame.unique("en_mark", keep="first", maintain_order=True).unique("other_mark", maintain_order=True)
        order = np.random.default_rng([seed, number]).permutation(len(unique))
        held[language] = unique[order[: min(held_out, len(frame) // 12)]]
    english = pl.concat([frame["en_mark"] for frame in held.values()]).implode()
    train = {
        language: frame.filter(
            ~pl.col("en_mark").is_in(english), ~pl.col("other_mark").is_in(held[language]["other_mark"].implode())
        ).select("en", "other")
        for language, frame in marked.items()
    }
    return ParallelSplit(train=train, held={k: f.select("en", "other") for k, f in held.items()})


def _mark(frame: pl.DataFrame) -> pl.DataFrame:
    marks = [pl.Series(f"{side}_mark", [fingerprint(text) for text in frame[side]]) for side in ("en", "other")]
    return frame.with_columns(marks).filter(pl.col("en_mark") != "", pl.col("other_mark") != "")
