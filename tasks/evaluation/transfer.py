"""SentEval's transfer tasks: found before the first stage, read where they are scored by linear classifiers."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl
from pydantic import BaseModel, ConfigDict

from models.evaluation.bootstrap import BootstrapConfig
from models.evaluation.probe.config import ProbeConfig
from storage.errors import SourceError
from storage.readers.report import ReadReport
from storage.refs import EmbeddingsRef, ScoresRef
from storage.schemas import SCORES
from storage.sources import ResolvedSource, SourceSpec, resolve_source
from storage.transfer import CLASS, TRANSFER_SETS, read_senteval_files, read_transfer_table
from tasks.evaluation.sets import EvaluationSet
from tasks.evaluation.vectors import Vectors, open_vectors
from tasks.site import Site
from tasks.stage.cached import Work, stage
from tasks.stage.machine import device_of, settle_threads
from tasks.stage.show import progress_of, show_table

if TYPE_CHECKING:
    from models.evaluation.probe.problem import Layout, Part, Problem

WITH_F1 = frozenset({"mrpc"})


class TransferSplit(BaseModel):
    """One split of a transfer set: a table, or SentEval's files."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str
    """`all`, `train`, `dev` or `test`."""
    sources: tuple[ResolvedSource, ...]
    """The table, or the files in declared order."""


class TransferSet(EvaluationSet):
    """A set of SentEval's classification tasks."""

    original: bool
    """Whether the sources are SentEval's files."""
    splits: tuple[TransferSplit, ...]
    """In the order of the protocol."""

    def sentences(self) -> pl.Series:
        """All texts, as they are scored."""
        texts = TRANSFER_SETS[self.dataset].texts
        return pl.concat([rows[name].rename("text") for rows in read_transfer_set(self).values() for name in texts])


def is_transfer_set(name: str) -> bool:
    """Whether a name is that of a transfer set."""
    return name in TRANSFER_SETS


def find_transfer_set(site: Site, name: str) -> TransferSet:
    """Find a transfer set as tables on the mirror, else as SentEval's own files unpacked there.

    Raises:
        SourceError: nobody has it; says where its tables were looked for.
    """
    try:
        return resolve_transfer_set(site, name)
    except SourceError as absent:
        if site.mirror is None:
            raise
        try:
            return resolve_transfer_set(site, name, site.mirror)
        except SourceError:
            raise absent from None


def resolve_transfer_set(site: Site, name: str, senteval: str | None = None) -> TransferSet:
    """Find a transfer set.

    Args:
        site: its mirror may hold the set as tables, one for each split.
        name: `mr`, `cr`, `subj`, `mpqa`, `sst2`, `sst5`, `trec` or `mrpc`.
        senteval: folder `data/downstream` of a SentEval copy, or the unpacked `senteval.tar` of SimCSE's authors on the
            Hub (princeton-nlp/datasets-for-simcse); read instead of the mirror.

    Raises:
        SourceError: no such set, or nobody has it.
    """
    if name not in TRANSFER_SETS:
        raise SourceError(f"{name!r} names no transfer set; expected one of {', '.join(TRANSFER_SETS)}")
    declared = TRANSFER_SETS[name]
    splits = []
    for split, files in declared.files.items():
        if senteval is None:
            specs = [SourceSpec(dataset=name, split=split)]
        else:
            folder = senteval.rstrip("/")
            specs = [SourceSpec(path=f"{folder}/{path}", name=name, format="txt") for path, _ in files]
        sources = tuple(resolve_source(spec, site.mirror) for spec in specs)
        splits.append(TransferSplit(name=split, sources=sources))
    return TransferSet(dataset=name, original=senteval is not None, splits=tuple(splits))


def read_transfer_set(labelled: TransferSet) -> dict[str, pl.DataFrame]:
    """Split to its rows in order: `text`, or `sentence1` and `sentence2`, and `class`, the number of the class.

    Raises:
        SourceError: a column is missing, a line has another form or a label is unknown, naming the row.
    """
    declared = TRANSFER_SETS[labelled.dataset]
    out = {}
    for split in labelled.splits:
        report = ReadReport(f"{labelled.dataset} {split.name}")
        if labelled.original:
            files = zip(split.sources, (label for _, label in declared.files[split.name]), strict=True)
            out[split.name] = read_senteval_files(list(files), declared, report)
        else:
            out[split.name] = read_transfer_table(split.sources[0], declared, report)
    return out


def make_task(labelled: TransferSet, vectors: Vectors, config: ProbeConfig) -> "Problem":
    """A transfer set with its features, in SentEval's order and folds.

    Raises:
        SourceError: a sentence has no vector.
        EvaluationError: as `models.evaluation.probe.problem.make_problem`.
    """
    from models.evaluation.probe.problem import make_problem

    layouts: dict[int, Layout] = {1: "nested", 2: "kfold", 3: "split"}
    frames = read_transfer_set(labelled)
    parts = {split: _part(rows, vectors, f"{labelled.dataset} {split}") for split, rows in frames.items()}
    classes = TRANSFER_SETS[labelled.dataset].classes
    return make_problem(labelled.dataset, layouts[len(parts)], parts, classes, folds=config.folds, seed=config.seed)


def _part(rows: pl.DataFrame, vectors: Vectors, place: str) -> "Part":
    from models.evaluation.probe.problem import Part, pair_features, senteval_order

    texts = [rows[name] for name in rows.columns if name != CLASS]
    embedded = [vectors.of(text, place) for text in texts]
    labels = rows[CLASS].to_numpy()
    features = embedded[0] if len(embedded) == 1 else pair_features(*embedded)
    return Part(features, labels, senteval_order([text.to_list() for text in texts], labels))


@stage(ref=ScoresRef, version=2)
def score_transfer(
    work: Work,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[TransferSet, ...],
    config: ProbeConfig,
    bootstrap: BootstrapConfig,
) -> None:
    """Train linear classifiers on frozen embeddings, as SentEval does and exactly; accuracies, and F1 for MRPC."""
    settle_threads(work.site)
    vectors, device = open_vectors(work.store, embeddings), device_of(work.site)
    rows = transfer_figures(sets, vectors, config, bootstrap, device, progress_of("probing"))
    named = rows.with_columns(model=pl.lit(model), seed=pl.lit(config.seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    work.draft.write(scores)
    show_table("transfer-table", scores.to_dicts(), f"Transfer tasks of {model}")


def transfer_figures(
    sets: Sequence[TransferSet],
    vectors: Vectors,
    config: ProbeConfig,
    bootstrap: BootstrapConfig,
    device: str,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> pl.DataFrame:
    """Every figure of transfer sets, columns as `models.evaluation.probe.figures`' rows."""
    from models.evaluation.probe.figures import probe_rows
    from models.evaluation.probe.search import probe

    tasks = [make_task(labelled, vectors, config) for labelled in sets]
    rows = []
    for protocol in config.protocols:
        outcomes = probe(tasks, protocol, config, device=device, on_progress=on_progress)
        for task, found in zip(tasks, outcomes, strict=True):
            rows += probe_rows(task, found, protocol, bootstrap, f1=task.name in WITH_F1)
    return pl.DataFrame([asdict(row) for row in rows])
