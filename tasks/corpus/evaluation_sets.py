"""Evaluation sets: found before the first stage, identified in keys by their content, read once per process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.normalize import sentence_ids
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.filesystem.spelling import did_you_mean
from bsl.storage.record import Record
from bsl.storage.sources.label_names import SET_PREFIX as LABELS
from bsl.storage.sources.own_text import SET_PREFIX as OWN
from bsl.storage.sources.scored_sets import read_declared_pairs
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.tasks.stage.run_context import RunContext

_TEXTS: Final = ("text", "sentence1", "sentence2")  # columns with sentences


class EvaluationSet(Record, ABC):
    """A dataset for the evaluation of encoders, of any task."""

    dataset: str
    """Declared name, without `embedded:`."""

    @abstractmethod
    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return each split's rows in order, checked; `rows_of` caches them.

        Raises:
            SourceError: the set cannot be read, or differs from its papers' description.
        """

    def sentences(self) -> pl.Series:
        """Return all sentences as they are scored, with repetitions: column by column, split by split."""
        return pl.concat([rows[column].rename("text") for _, rows, column in self._columns()])

    def place(self, number: int) -> str:
        """Return the position of sentence `number` of `sentences()`, for messages; its row if it is a cell of a row."""
        before = 0
        for split, rows, column in self._columns() if type(self).sentences is EvaluationSet.sentences else ():
            if number < before + rows.height:
                return f"{self.dataset} {split}, row {number - before + 1}, {column}"
            before += rows.height
        return f"{self.dataset}, sentence {number + 1}"

    def _columns(self) -> Iterator[tuple[str, pl.DataFrame, str]]:
        for split, rows in rows_of(self).items():
            yield from ((split, rows, column) for column in _TEXTS if column in rows.columns)


@lru_cache(maxsize=64)  # enough for all suites; stages, folds and seeds read the same sets, perhaps from the Hub
def rows_of(evaluation_set: EvaluationSet) -> Mapping[str, pl.DataFrame]:
    """Return each split's rows in order, read once per process.

    Raises:
        SourceError: as for `EvaluationSet.read`.
    """
    return evaluation_set.read()


def unique_sentences(sets: Sequence[EvaluationSet]) -> pl.DataFrame:
    """Return the unique sentences of evaluation sets as they are scored (not normalised), sorted by id."""
    texts = pl.concat([evaluation_set.sentences() for evaluation_set in sets])
    frame = texts.unique().to_frame("text").with_columns(sentence_id=sentence_ids(pl.col("text")))
    return frame.select("sentence_id", "text").sort("sentence_id")


class ScoredSet(EvaluationSet):
    """One split of a semantic textual similarity set."""

    split: str
    source: ResolvedSource

    @property
    def name(self) -> str:
        """Name in messages and tables."""
        return f"{self.dataset} {self.split}"

    @property
    def highest(self) -> float:
        """Highest score on the annotators' scale."""
        declared = DATASETS[self.dataset].score_range
        return declared[1] if declared else 5.0

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the pairs by split: `subset`, `sentence1`, `sentence2`, `score`."""
        return {self.split: read_declared_pairs(self.dataset, self.split, self.source)}


def resolve_scored_set(site: RunContext, name: str) -> ScoredSet:
    """Find the set named `<name>/<split>`, such as `stsb/test` or `embedded:stsb/dev`.

    Raises:
        SourceError: the name has another form, is not declared, or the set was not found.
    """
    dataset, _, split = name.rpartition("/")
    declared = dataset.removeprefix(EMBEDDED)
    if not is_scored_set(name):
        known = [other for other, found in DATASETS.items() if found.score_range]
        hint = did_you_mean(declared or split, known)
        raise SourceError(f"unknown scored set {name!r} (expected <name>/<split>).{hint} Names: {', '.join(known)}.")
    source = resolve_source(SourceSpec(dataset=dataset, split=split), site.mirror)
    return ScoredSet(dataset=declared, split=split, source=source)


def in_full(name: str) -> str:
    """Return the name that a set has in results, so that each set has one.

    The bare name of a scored set gets `/test`, as in `bsl mirror`. A local path in `labels:FILE` or `own:FILE` loses
    `./`, `//` and a last `/`. Other names are unchanged.
    """
    prefix, colon, file = name.partition(":")
    if f"{prefix}{colon}" in (LABELS, OWN) and file and "://" not in file:
        path, mark, columns = file.partition("#")
        return f"{prefix}:{PurePosixPath(path)}{mark}{columns}"
    test = f"{name}/test"
    declared = DATASETS.get(name.removeprefix(EMBEDDED))
    return test if is_scored_set(test) and declared is not None and "test" in declared.splits else name


def is_scored_set(name: str) -> bool:
    """Return whether `<name>/<split>` names a scored set."""
    declared = DATASETS.get(name.rpartition("/")[0].removeprefix(EMBEDDED))
    return declared is not None and declared.score_range is not None


def read_scored_set(scored: ScoredSet) -> pl.DataFrame:
    """Return the checked pairs in order: `subset`, `sentence1`, `sentence2`, `score`."""
    return rows_of(scored)[scored.split]
