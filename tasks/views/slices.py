"""A corpus rewritten slice by slice, so that a killed run makes one slice twice at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from models.corpus.normalize import normalize
from models.runtime.random_state import scattered
from storage.filesystem.atomic import whole
from storage.filesystem.os_errors import writing
from tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from pathlib import Path

    from storage.artifacts.refs import CorpusRef
    from tasks.stage.cached import Work

SLICE_ROWS = 8192

Rewrite = Callable[[Sequence[str], Sequence[int]], list[str]]
"""Sentences and a number of each one's own to their views."""


def rewrite_corpus(work: Work, corpus: CorpusRef, method: str, lang: str | None, seed: int, rewrite: Rewrite) -> None:
    """Write a view of each sentence of a language (None: of all), slice by slice; a killed run's slices are kept.

    The scratch folder may go at any moment: another run that makes the same views drops it when it has published.
    """
    sentences = work.store.scan(corpus)
    total = sentences.select(pl.len()).collect().item()
    scratch, advance = work.store.scratch(work.ref), progress_of(f"view {method}, sentences")
    for start in range(0, total, SLICE_ROWS):
        finished = scratch / f"{method}-{start:012}.parquet"
        views = _kept(finished)
        if views is None:
            rows = sentences.slice(start, SLICE_ROWS)
            sources = (rows if lang is None else rows.filter(pl.col("lang") == lang)).collect()
            views = _views(sources, method, seed, rewrite)
            _keep(views, finished)
        work.draft.write(views)
        advance(min(start + SLICE_ROWS, total), total, "")


def _views(sources: pl.DataFrame, method: str, seed: int, rewrite: Rewrite) -> pl.DataFrame:
    seeds = sources.select(scattered(pl.col("sentence_id"), seed)).to_series()
    texts = pl.Series(rewrite(sources["text"].to_list(), seeds.to_list()), dtype=pl.String)
    return sources.select("sentence_id", method=pl.lit(method), text=texts).with_columns(normalize(pl.col("text")))


def _kept(path: Path) -> pl.DataFrame | None:
    try:
        return pl.read_parquet(path, glob=False)
    except FileNotFoundError:
        return None


def _keep(views: pl.DataFrame, path: Path) -> None:
    with writing(path), whole(path) as unfinished:
        views.write_parquet(unfinished)
