"""What encoders are evaluated on: found before the first stage, named in keys by its bytes, read once a process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl
from pydantic import BaseModel, ConfigDict

from models.corpus.normalize import sentence_ids
from storage.assets.embedded import EMBEDDED
from storage.datasets.registry import DATASETS
from storage.errors import SourceError
from storage.sources.scored_sets import read_declared_pairs
from storage.sources.sources import ResolvedSource, SourceSpec, resolve_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.stage.run_context import RunContext


class EvaluationSet(BaseModel, ABC):
    """A data set that encoders are evaluated on, whatever the task."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    dataset: str
    """Declared name, without `embedded:`."""

    @abstractmethod
    def read(self) -> Mapping[str, pl.DataFrame]:
        """Split → its rows in order, checked; `rows_of` keeps them.

        Raises:
            SourceError: it cannot be read, or is not what its papers say.
        """

    @abstractmethod
    def sentences(self) -> pl.Series:
        """Every sentence, as it is scored and as often as it occurs."""

    def place(self, number: int) -> str:
        """Where the sentence `number` of `sentences()` stands, for messages."""
        return f"{self.dataset}, sentence {number + 1}"


@lru_cache(maxsize=64)  # all suites: stages, folds and seeds read the same sets, perhaps from the Hub
def rows_of(wanted: EvaluationSet) -> Mapping[str, pl.DataFrame]:
    """Split → its rows in order, read once a process.

    Raises:
        SourceError: as `EvaluationSet.read`.
    """
    return wanted.read()


def unique_sentences(sets: Sequence[EvaluationSet]) -> pl.DataFrame:
    """The sentences of evaluation sets as they are scored (not normalised), each once, by id."""
    texts = pl.concat([wanted.sentences() for wanted in sets])
    frame = texts.unique().to_frame("text").with_columns(sentence_id=sentence_ids(pl.col("text")))
    return frame.select("sentence_id", "text").sort("sentence_id")


class ScoredSet(EvaluationSet):
    """One split of a semantic textual similarity set."""

    split: str
    source: ResolvedSource

    @property
    def name(self) -> str:
        """For messages and tables."""
        return f"{self.dataset} {self.split}"

    @property
    def highest(self) -> float:
        """The largest score that its annotators could give."""
        declared = DATASETS[self.dataset].score_range
        return declared[1] if declared else 5.0

    def read(self) -> Mapping[str, pl.DataFrame]:
        """The pairs: `subset`, `sentence1`, `sentence2`, `score`."""
        return {self.split: read_declared_pairs(self.dataset, self.split, self.source)}

    def sentences(self) -> pl.Series:
        """Both sides of each pair."""
        pairs = read_scored_set(self)
        return pl.concat([pairs["sentence1"], pairs["sentence2"]])

    def place(self, number: int) -> str:
        """Row and side."""
        return place_in_pairs(self.name, number, read_scored_set(self).height)


def place_in_pairs(name: str, number: int, pairs: int) -> str:
    """Where a sentence stands, counted through all first sides and then all second ones."""
    return f"{name}, row {number % pairs + 1}, sentence{number // pairs + 1}"


def resolve_scored_set(site: RunContext, name: str) -> ScoredSet:
    """Find the set called `<name>/<split>`, such as `stsb/test` or `embedded:stsb/dev`.

    Raises:
        SourceError: the name has another form, is not declared, or nobody has the set.
    """
    dataset, _, split = name.rpartition("/")
    declared = dataset.removeprefix(EMBEDDED)
    if not is_scored_set(name):
        known = ", ".join(other for other, found in DATASETS.items() if found.score_range)
        raise SourceError(f"{name!r} names no scored set; expected <name>/<split> with a name out of {known}")
    source = resolve_source(SourceSpec(dataset=dataset, split=split), site.mirror)
    return ScoredSet(dataset=declared, split=split, source=source)


def in_full(name: str) -> str:
    """`<name>/test` for the bare name of a scored set, as `bsl mirror` takes it; any other name as it is."""
    whole = f"{name}/test"
    declared = DATASETS.get(name.removeprefix(EMBEDDED))
    return whole if is_scored_set(whole) and declared is not None and "test" in declared.splits else name


def is_scored_set(name: str) -> bool:
    """Whether `<name>/<split>` is that of a scored set."""
    declared = DATASETS.get(name.rpartition("/")[0].removeprefix(EMBEDDED))
    return declared is not None and declared.score_range is not None


def read_scored_set(scored: ScoredSet) -> pl.DataFrame:
    """The pairs in their order, checked: `subset`, `sentence1`, `sentence2`, `score`."""
    return rows_of(scored)[scored.split]
