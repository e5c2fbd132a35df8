"""Base classes of kinds of evaluation, and the signatures of their scores.

To add a kind, subclass `FrozenKind` or `TunedKind` in a new file, and add an instance to `kinds.KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

import polars as pl

from bsl.models.evaluation.signature import WHOLE, rows_digest, signature
from bsl.storage.artifacts.schemas import SCORES
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.embedding.vectors import versions_of
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.rendering.score_tables import score_rows
from bsl.tasks.stage.ui import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
    from bsl.models.evaluation.sweep import SetDraws
    from bsl.storage.artifacts.refs import ScoresRef
    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.evaluation.config import EvaluationSettings
    from bsl.tasks.evaluation.systems import NamedEncoder
    from bsl.tasks.rendering.paper_tables import PaperTable
    from bsl.tasks.stage.cached import StageContext
    from bsl.tasks.stage.run_context import RunContext


S = TypeVar("S", bound=EvaluationSet)
DRAWS_VERSION: Final = 6
"""Raise it with a change of any kind's draws or figures; a part of the version of all stages that compute these."""


class Kind(ABC, Generic[S]):
    """A kind of evaluation: sets that are found and scored in the same way.

    Attributes:
        suites: Suite → the names of its sets, in the order of the papers' tables.
        tables: Layouts of the papers' tables for its scores.
    """

    suites: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    tables: ClassVar[tuple[PaperTable, ...]] = ()

    @property
    def is_drawn(self) -> bool:
        """Whether it has `draws`, so that systems are compared on its sets."""
        return type(self).draws is not Kind.draws

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of its sets, for help and hints."""

    def knows(self, name: str) -> bool:
        """Return whether a set of that name is of this kind; it need not be in `names`."""
        return name in self.names

    @abstractmethod
    def find(self, site: RunContext, name: str) -> S:
        """Find a set of this kind.

        Raises:
            SourceError: The set is not available.
        """

    def whole(self, name: str) -> tuple[str, ...]:
        """Return the names of all splits of the dataset to which a set belongs."""
        return (name,)

    @property
    def headline(self) -> tuple[str, ...]:
        """The main metrics of a set, shown where systems are compared: the metrics of its tables."""
        return tuple(dict.fromkeys(metric for table in self.tables for metric in table.metrics))

    def draws(
        self,
        evaluation_set: S,  # noqa: ARG002 - for subclasses
        systems: Sequence[Sequence[Vectors]],  # noqa: ARG002
        config: BootstrapConfig,  # noqa: ARG002
    ) -> list[SetDraws]:
        """Return bootstrap scores of several systems on a set, all on the same draws.

        A system is the vectors of its encoders, one per seed.
        """
        return []


class FrozenKind(Kind[S]):
    """Kind that scores frozen vectors of any system.

    Attributes:
        title: Title of its scores; unique, since keys of scores contain it.
        probes: Whether it trains classifiers, with the settings `probe` of the evaluation.
        measure: Fields of its signatures that describe the computation of a score.
    """

    title: ClassVar[str]
    probes: ClassVar[bool] = False
    measure: ClassVar[Mapping[str, object]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sets of its suites."""
        return tuple(dict.fromkeys(name for names in self.suites.values() for name in names))

    def figures(
        self,
        sets: tuple[S, ...],
        vectors: Vectors,
        config: ScoringConfig,
        device: str = "cpu",  # noqa: ARG002 - for subclasses
    ) -> pl.DataFrame:
        """Return signed scores: dataset, subset, split, metric, protocol, value, n, ci_low, ci_high, signature.

        By default a figure for each of its draws, with the interval of the draws; a kind without draws overrides it.
        Classifiers are trained on `device`.
        """
        from bsl.models.evaluation.significance.bootstrap import percentile_interval

        rows = []
        for found in (found for one in sets for found in self.draws(one, [[vectors]], config.bootstrap)):
            (system,) = found.systems
            low, high = percentile_interval(system.draws[:, 0])
            place = {"dataset": found.dataset, "split": found.split, "subset": WHOLE, "metric": found.metric}
            figure = {"value": float(system.figures[0]), "n": found.n, "ci_low": low, "ci_high": high}
            rows.append(place | {"protocol": found.protocol} | figure)
        figures = pl.DataFrame(rows)
        return with_signatures(figures, digests(figures, sets), vectors.computation, **self.measure)


class TunedKind(Kind[S]):
    """Kind that fine-tunes encoders on a part of the set and scores them on the rest.

    It takes hours on a CPU, so its sets are in no suite and training runs do not score them.
    """

    @abstractmethod
    def scores(
        self, site: RunContext, candidate: NamedEncoder, sets: tuple[S, ...], config: EvaluationSettings
    ) -> list[ScoresRef]:
        """Score an encoder: a cached stage for each seed or fold, and one that combines them."""


def publish_scores(
    context: StageContext, rows: pl.DataFrame, model: str, checkpoint: str, seed: int, title: str
) -> None:
    """Write a system's scores, as of `FrozenKind.figures`, as the table `scores`, and show them."""
    named = rows.with_columns(model=pl.lit(model), seed=pl.lit(seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    context.draft.write(scores)
    show(Table.of(title, score_rows(scores)))


def with_signatures(
    figures: pl.DataFrame, data: Mapping[tuple[str, str], str], computation: Mapping[str, object], **by: object
) -> pl.DataFrame:
    """Add the column `signature` to scores.

    A signature has the digest of the scored rows of each dataset and split (`data`, as from `digests`), and fields that
    describe the computation of the vectors and, `by` kind, of the score.
    """
    version = versions_of("bsl-pipeline")["bsl-pipeline"]
    lines = [
        signature(
            {
                "set": "/".join(part for part in (row["dataset"], row["split"], row["subset"]) if part != WHOLE),
                "metric": row["metric"],
                "protocol": row["protocol"],
                **by,
                "data": data[row["dataset"], row["split"]],
                **computation,
                "bsl": version,
            }
        )
        for row in figures.iter_rows(named=True)
    ]
    return figures.with_columns(signature=pl.Series(lines, dtype=pl.String))


def digests(figures: pl.DataFrame, sets: Sequence[EvaluationSet]) -> dict[tuple[str, str], str]:
    """Return dataset and split of scores → digest of the scored set.

    Two splits of one dataset may be two sets. A split without rows, such as `all`, means the complete set.
    """
    places = figures.select("dataset", "split").unique(maintain_order=True).rows()
    return {(dataset, split): digest_of(_set_of(dataset, split, sets)) for dataset, split in places}


@lru_cache(maxsize=64)
def digest_of(evaluation_set: EvaluationSet) -> str:
    """Return the digest of all rows of a set, split by split.

    Raises:
        SourceError: The set cannot be read.
    """
    return rows_digest((split, rows.iter_rows()) for split, rows in rows_of(evaluation_set).items())


def _set_of(dataset: str, split: str, sets: Sequence[EvaluationSet]) -> EvaluationSet:
    candidates = [evaluation_set for evaluation_set in sets if evaluation_set.dataset == dataset]
    return next((evaluation_set for evaluation_set in candidates if split in rows_of(evaluation_set)), candidates[0])
