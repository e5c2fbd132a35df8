"""What a kind of evaluation is, and the signature of its figures.

To add a kind: a file that says all this, and its line in `kinds.KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import polars as pl

from models.evaluation.signature import rows_digest, signature
from storage.artifacts.schemas import COMPARISON, SCORES
from tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from tasks.embedding.vectors import versions_of
from tasks.rendering.score_tables import difference_rows, score_rows
from tasks.stage.ui import show_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.evaluation.config import BootstrapConfig, ScoringConfig
    from models.evaluation.sweep import SetDraws
    from storage.artifacts.refs import ComparisonRef, ScoresRef
    from tasks.embedding.vectors import Vectors
    from tasks.evaluation.systems import EvaluationSettings, NamedEncoder, System
    from tasks.rendering.paper_tables import PaperTable
    from tasks.stage.cached import StageContext
    from tasks.stage.run_context import RunContext


S = TypeVar("S", bound=EvaluationSet)


class Kind(ABC, Generic[S]):
    """Sets that are found and scored in one way.

    Attributes:
        fine_tunes: whether scoring trains the encoder further, for hours on a CPU; such sets are asked for by name
            alone, and are not scored in a training run.
    """

    fine_tunes: ClassVar[bool]

    @property
    def suites(self) -> Mapping[str, tuple[str, ...]]:
        """Suite → the names of its sets, in the order of the papers' tables."""
        return {}

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names that it offers, for help and hints."""

    def knows(self, name: str) -> bool:
        """Whether a set of that name is of this kind, offered or not."""
        return name in self.names

    @abstractmethod
    def find(self, site: RunContext, name: str) -> S:
        """Find a set that it knows.

        Raises:
            SourceError: nobody has it.
        """

    def whole(self, name: str) -> tuple[str, ...]:
        """The sets that are all of a set's data together: every split, where a set is one of them."""
        return (name,)

    @property
    def tables(self) -> tuple[PaperTable, ...]:
        """The papers' tables of its figures."""
        return ()

    @property
    def headline(self) -> tuple[str, ...]:
        """The metrics that stand for a set where systems are listed side by side: those of its tables."""
        return tuple(dict.fromkeys(metric for table in self.tables for metric in table.metrics))


class FrozenKind(Kind[S]):
    """Vectors are scored as they are, whatever made them."""

    fine_tunes = False
    is_drawn: ClassVar[bool] = False
    """Whether `draws` gives figures, so that sweeps compare systems on its sets."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of its suites."""
        return tuple(dict.fromkeys(name for names in self.suites.values() for name in names))

    @abstractmethod
    def scores(self, site: RunContext, system: System, sets: tuple[S, ...], config: ScoringConfig) -> list[ScoresRef]:
        """A system's figures, by cached stages of its own."""

    @abstractmethod
    def figures(self, sets: tuple[S, ...], vectors: Vectors, config: ScoringConfig, device: str) -> pl.DataFrame:
        """Signed figures: dataset, subset, split, metric, protocol, value, n, ci_low, ci_high, signature."""

    def compare(
        self,
        site: RunContext,  # noqa: ARG002 - for those that can
        first: System,  # noqa: ARG002
        second: System,  # noqa: ARG002
        sets: tuple[S, ...],  # noqa: ARG002
        config: ScoringConfig,  # noqa: ARG002
    ) -> list[ComparisonRef]:
        """The second system less the first, by cached stages of its own; none if it cannot compare."""
        return []

    def draws(
        self,
        wanted: S,  # noqa: ARG002 - for those that can
        systems: Sequence[Sequence[Vectors]],  # noqa: ARG002
        config: BootstrapConfig,  # noqa: ARG002
    ) -> list[SetDraws]:
        """Return what systems of several seeds score on a set, all on the same draws of it.

        Override it together with `is_drawn`.

        Args:
            wanted: the set.
            systems: of each system, the vectors of its encoders, one a seed.
            config: number and seed of the draws.
        """
        return []


class TunedKind(Kind[S]):
    """Encoders are fine-tuned on a part of the set and scored on the rest."""

    fine_tunes = True

    @abstractmethod
    def scores(
        self, site: RunContext, candidate: NamedEncoder, sets: tuple[S, ...], config: EvaluationSettings
    ) -> list[ScoresRef]:
        """An encoder's figures: cached stages for each seed or fold, and one for all of them."""


def publish_scores(work: StageContext, rows: pl.DataFrame, model: str, checkpoint: str, seed: int, title: str) -> None:
    """Write a system's figures as the table `scores`, and show them.

    Args:
        work: of the stage that scored.
        rows: dataset, subset, split, metric, protocol, value, n, ci_low, ci_high, signature.
        model: what tables call the system.
        checkpoint: what identifies it.
        seed: of the draws, or of the training.
        title: of the table that people see.
    """
    named = rows.with_columns(model=pl.lit(model), seed=pl.lit(seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    work.draft.write(scores)
    show_table(f"{work.draft.provenance.stage.replace('_', '-')}-table", score_rows(scores), title)


def publish_comparison(
    work: StageContext, rows: Sequence[Mapping[str, object]], names: tuple[str, str], seed: int, title: str
) -> None:
    """Write what a second system has more than a first, and show it.

    Args:
        work: of the stage that compared.
        rows: the columns of a comparison but for the systems and the seed.
        names: what tables call the systems.
        seed: of the draws.
        title: of the table that people see.
    """
    table = pl.DataFrame(rows).with_columns(model=pl.lit(names[1]), reference=pl.lit(names[0]), seed=pl.lit(seed))
    comparison = table.select(COMPARISON.names()).cast(COMPARISON)
    work.draft.write(comparison)
    show_table("comparison-table", difference_rows(comparison), title)


_WHOLE = "all"  # the subset of a figure over all of them


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
