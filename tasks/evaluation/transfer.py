"""SentEval's transfer tasks: linear classifiers on frozen vectors."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from bsl.storage.datasets.registry import DATASETS, headings_of, suites_of
from bsl.storage.readers.benchmarks.senteval import TRANSFER_SETS
from bsl.storage.record import Record
from bsl.storage.sources.scored_sets import CLASS, read_transfer_table
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_source
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.evaluation.kind import FrozenKind, digests, with_signatures
from bsl.tasks.rendering.paper_tables import PaperTable
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.models.evaluation.config import ProbeConfig, ScoringConfig
    from bsl.models.evaluation.probe.problem import Layout, Part, Problem
    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.stage.run_context import RunContext


class TransferSplit(Record):
    """One split of a transfer set."""

    name: str
    """`all`, `train`, `dev` or `test`."""
    source: ResolvedSource
    """Table of the split, or SentEval's files."""


class TransferSet(EvaluationSet):
    """A set of SentEval's classification tasks."""

    splits: tuple[TransferSplit, ...]
    """Splits in the order of the protocol."""
    blank: str = "."
    """Text in place of a blank line, as in SentEval's example scripts."""

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return a table for each split: `text` or `sentence1` and `sentence2`, and `class`, the class number."""
        return {split.name: read_transfer_table(self.dataset, split.name, split.source) for split in self.splits}

    def sentences(self) -> pl.Series:
        """Return all texts, with `blank` in place of blank lines."""
        return self.filled(super().sentences())

    def filled(self, texts: pl.Series) -> pl.Series:
        """Return texts for the encoder, with `blank` in place of blank lines."""
        return texts.str.replace(r"^\s*$", self.blank)


class TransferKind(FrozenKind[TransferSet]):
    """Kind of SentEval's classification tasks."""

    title = "SentEval transfer"
    probes = True
    suites: ClassVar = {
        suite: tuple(dataset.name for dataset in members)
        for suite, members in suites_of(DATASETS[name] for name in TRANSFER_SETS).items()
    }
    tables = (PaperTable(title=title, columns=tuple(headings_of("senteval").items()), metrics=("accuracy",)),)
    headline = ("accuracy", "f1")

    def find(self, site: RunContext, name: str) -> TransferSet:
        """Find a transfer set.

        Args:
            site: Run context. Its mirror may contain the set as tables, one for each split, or the files of SentEval's
                download script (folder `data/downstream` of a SentEval copy). Otherwise the files come from the Hub:
                MRPC from GLUE's tables, SST-5 from SetFit's, others from `senteval.tar` of SimCSE's authors
                (princeton-nlp/datasets-for-simcse).
            name: `mr`, `cr`, `subj`, `mpqa`, `sst2`, `sst5`, `trec` or `mrpc`.

        Raises:
            SourceError: The set is not available; the message names the searched places.
        """
        splits = TRANSFER_SETS[name].files
        sources = {split: resolve_source(SourceSpec(dataset=name, split=split), site.mirror) for split in splits}
        found = tuple(TransferSplit(name=split, source=source) for split, source in sources.items())
        return TransferSet(dataset=name, splits=found)

    def figures(
        self, sets: tuple[TransferSet, ...], vectors: Vectors, config: ScoringConfig, device: str = "cpu"
    ) -> pl.DataFrame:
        """Return accuracies, and F1 for MRPC."""
        from bsl.models.evaluation.probe.search import probe, probe_rows

        probing, progress = config.probe, progress_of("probing", following=None)
        tasks = [make_task(labelled, vectors, probing) for labelled in sets]
        rows = []
        for protocol in probing.protocols:
            outcomes = probe(tasks, protocol, probing, device=device, on_progress=progress)
            for task, folds in zip(tasks, outcomes, strict=True):
                rows += probe_rows(task, folds, protocol, config.bootstrap, f1=TRANSFER_SETS[task.name].f1)
        table = pl.DataFrame([asdict(row) for row in rows])
        fits = {"by": "logistic", "folds": probing.folds, "seed": probing.seed, "epochs": probing.epoch_size}
        return with_signatures(table, digests(table, sets), vectors.computation, **fits, tenacity=probing.tenacity)


def make_task(labelled: TransferSet, vectors: Vectors, config: ProbeConfig) -> Problem:
    """Return the classification problem of a transfer set: features and labels in SentEval's order and folds.

    Raises:
        SourceError: A sentence has no vector.
        EvaluationError: As `bsl.models.evaluation.probe.problem.make_problem`.
    """
    from bsl.models.evaluation.probe.problem import make_problem

    layouts: dict[int, Layout] = {1: "nested", 2: "kfold", 3: "split"}
    frames = rows_of(labelled)
    parts = {split: _part(labelled, split, rows, vectors) for split, rows in frames.items()}
    classes = TRANSFER_SETS[labelled.dataset].classes
    return make_problem(labelled.dataset, layouts[len(parts)], parts, classes, folds=config.folds, seed=config.seed)


def _part(labelled: TransferSet, split: str, rows: pl.DataFrame, vectors: Vectors) -> Part:
    from bsl.models.evaluation.probe.problem import Part, pair_features, senteval_order

    names = [name for name in rows.columns if name != CLASS]
    embedded = [
        vectors.features(
            labelled.filled(rows[name]), f"{labelled.dataset} {split}{'' if len(names) == 1 else f', {name}'}"
        )
        for name in names
    ]
    labels = rows[CLASS].to_numpy()
    features = embedded[0] if len(embedded) == 1 else pair_features(*embedded)
    return Part(features, labels, senteval_order([rows[name].to_list() for name in names], labels))
