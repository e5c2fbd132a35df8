"""What a run's page is made of, gathered by tasks/reporting/run/content.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from models.evaluation.published import PublishedRow
    from models.report.tables import PaperTable
    from models.report.verdict import Verdict

    Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Artifact:
    """An artifact on the data's way.

    Attributes:
        stage: what made it.
        system: whose vectors or figures it holds; empty for those of none.
        kind: its kind.
        key: its key.
        rows: of its tables.
        size: bytes.
        seconds: that making it took, now or when it was made.
        made: whether this run made it.
        inputs: `<kind>/<key>` of what it was made from.
    """

    stage: str
    system: str
    kind: str
    key: str
    rows: int
    size: int
    seconds: float
    made: bool
    inputs: Sequence[str]


@dataclass(frozen=True)
class ComparedSet:
    """A set of scored pairs under the run's systems.

    Attributes:
        name: data set and split.
        dataset: the data set.
        split: the split.
        pairs: `sentence1`, `sentence2`, `score`; N rows.
        cosines: system → cosine of each pair, (N,).
    """

    name: str
    dataset: str
    split: str
    pairs: pl.DataFrame
    cosines: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Making:
    """What became of the sentences, stage by stage, as the stages counted it.

    Attributes:
        sentences: from records read to sentences published.
        examples: rows with the original sentence and one column a view.
        outcomes: views kept and dropped, with the reason.
        hops: translations made for this corpus, and how long they took.
        pairings: training → pairs by pairing, and what each lost.
    """

    sentences: Mapping[str, object]
    examples: Rows
    outcomes: Rows
    hops: Rows
    pairings: Mapping[str, Rows]


@dataclass(frozen=True)
class Reproduction:
    """How to have the same again.

    Attributes:
        command: that starts it; empty where no command alone does.
        environment: what it ran on: commit, versions, system.
        seeds: field → seed.
        config: the complete configuration, as JSON text.
    """

    command: str
    environment: Mapping[str, str]
    seeds: Mapping[str, object]
    config: str


@dataclass(frozen=True)
class RunContent:
    """All of it.

    Attributes:
        title: the recipe's name and purpose.
        summary: name → value of what was run.
        verdict: whether training did the encoder good; None where nothing was trained.
        telling: data set and split that the verdict stands on; None without one.
        systems: what tables call the encoder at the start and after each training.
        drawn: the two systems whose pairs are looked at, or the one.
        scores: the scores tables of all systems.
        comparison: differences from the start.
        tables: the papers' tables.
        published: rows to stand beside.
        sets: scored pairs under every system.
        resamples: draws of an interval.
        seed: of these draws.
        missing: set that was asked for and could not be had → why.
        findings: what the stages remarked, such as why a start was kept.
        artifacts: the data's way, in order.
        making: what became of the sentences.
        logs: training → its log.
        training: name → value, as the last training measured it.
        reproduction: how to have the same again.
    """

    title: str
    summary: Mapping[str, str]
    verdict: Verdict | None
    telling: tuple[str, str] | None
    systems: Sequence[str]
    drawn: Sequence[str]
    scores: pl.DataFrame
    comparison: pl.DataFrame | None
    tables: Sequence[PaperTable]
    published: Sequence[PublishedRow]
    sets: Sequence[ComparedSet]
    resamples: int
    seed: int
    missing: Mapping[str, str]
    findings: Mapping[str, str]
    artifacts: Sequence[Artifact]
    making: Making
    logs: Mapping[str, pl.DataFrame]
    training: Mapping[str, str]
    reproduction: Reproduction
