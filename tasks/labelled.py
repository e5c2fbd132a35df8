"""The transfer sets: found before the first stage, named in keys by their bytes, read where they are scored."""

from typing import TYPE_CHECKING

import polars as pl
from pydantic import BaseModel, ConfigDict

from storage.errors import SourceError
from storage.readers.labelled import CLASS, read_labelled_table, read_senteval_files
from storage.readers.report import ReadReport
from storage.sources import ResolvedSource, SourceSpec, resolve_source
from storage.transfer import TRANSFER_SETS
from tasks.resolve import EvaluationSet
from tasks.site import Site
from tasks.vectors import Vectors

if TYPE_CHECKING:
    from models.evaluation.probe.config import ProbeConfig
    from models.evaluation.probe.problem import Layout, Part, Problem


class LabelledSplit(BaseModel):
    """One split of a transfer set: a table, or SentEval's files."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str
    """`all`, `train`, `dev` or `test`."""
    sources: tuple[ResolvedSource, ...]
    """The table, or the files in declared order."""


class LabelledSet(EvaluationSet):
    """A set of SentEval's classification tasks."""

    original: bool
    """Whether the sources are SentEval's files."""
    splits: tuple[LabelledSplit, ...]
    """In the order of the protocol."""

    def sentences(self) -> pl.Series:
        """All texts, as they are scored."""
        texts = TRANSFER_SETS[self.dataset].texts
        return pl.concat([rows[name].rename("text") for rows in read_labelled_set(self).values() for name in texts])


def is_labelled_set(name: str) -> bool:
    """Whether a name is that of a transfer set."""
    return name in TRANSFER_SETS


def find_labelled_set(site: Site, name: str) -> LabelledSet:
    """Find a transfer set as tables on the mirror, else as SentEval's own files unpacked there.

    Raises:
        SourceError: nobody has it; says where its tables were looked for.
    """
    try:
        return resolve_labelled_set(site, name)
    except SourceError as absent:
        if site.mirror is None:
            raise
        try:
            return resolve_labelled_set(site, name, site.mirror)
        except SourceError:
            raise absent from None


def resolve_labelled_set(site: Site, name: str, senteval: str | None = None) -> LabelledSet:
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
        splits.append(LabelledSplit(name=split, sources=sources))
    return LabelledSet(dataset=name, original=senteval is not None, splits=tuple(splits))


def read_labelled_set(labelled: LabelledSet) -> dict[str, pl.DataFrame]:
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
            out[split.name] = read_labelled_table(split.sources[0], declared, report)
    return out


def make_task(labelled: LabelledSet, vectors: Vectors, config: "ProbeConfig") -> "Problem":
    """A transfer set with its features, in SentEval's order and folds.

    Raises:
        SourceError: a sentence has no vector.
        EvaluationError: as `models.evaluation.probe.problem.make_problem`.
    """
    from models.evaluation.probe.problem import make_problem

    layouts: dict[int, Layout] = {1: "nested", 2: "kfold", 3: "split"}
    frames = read_labelled_set(labelled)
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
