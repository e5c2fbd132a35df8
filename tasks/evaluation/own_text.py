"""The user's text as evaluation sets: a sentence retrieves its neighbour, its title and the rest of itself.

The name of a set is `own:` and a text of `bsl adapt`: a file, a folder, a pattern or a dataset. All its sentences are
queries, so no encoder should have been trained on them. `bsl adapt` and `bsl field` ask the same questions about
held-out documents, `HeldOutSet`, and evaluate on labels.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import polars as pl

from models.corpus.labels import JUDGE, Use
from models.corpus.passages import HoldOutConfig, LeftOut, whole
from models.errors import EvaluationError
from models.evaluation.config import BootstrapConfig, ScoringConfig
from models.evaluation.own_text import METRIC, probes, too_few
from storage.artifacts.refs import EmbeddingsRef, PassagesRef, ScoresRef, ViewsRef
from storage.artifacts.store import Store
from storage.record import NotInKey
from storage.sources.labels import LabelSource
from storage.sources.own_text import SET_PREFIX, ReadingConfig, TextSource
from tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from tasks.corpus.labels import TRAIN, labelled_rows, sides_of
from tasks.corpus.own_sentences import sentences_of
from tasks.embedding.vectors import Vectors, open_vectors
from tasks.evaluation.kind import DrawnKind, publish_scores
from tasks.evaluation.own_labels import label_draws
from tasks.stage.cached import StageContext, stage
from tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.retrieval import Retrieval
    from models.evaluation.sweep import SetDraws
    from tasks.evaluation.systems import System
    from tasks.stage.run_context import RunContext

_PART, _TRIPS, _LABELS = "text", "round trips", "labels"


class OwnTextSet(EvaluationSet):
    """Sentences of the user's files, in their order."""

    questions: ClassVar[int] = 1000
    """Maximum number of questions of a kind."""
    seed: ClassVar[int] = 0
    sources: tuple[TextSource, ...]

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the sentences in the form of `models.corpus.passages.whole`."""
        config = HoldOutConfig()
        tables = list(sentences_of(self.sources, config, LeftOut(), progress_of("reading, files")))
        sentences = whole(pl.concat(tables), config)
        if not probes(sentences):
            raise EvaluationError(f"{self.dataset}: {too_few(sentences)}.")
        return {_PART: sentences}

    def sentences(self) -> pl.Series:
        """Return the queries and targets of all questions."""
        return _texts_of(self)


class HeldOutSet(EvaluationSet):
    """Held-out sentences of a text for training, and labels."""

    dataset: str = "your text"
    passages: PassagesRef
    """Sentences of the text, by part."""
    trips: ViewsRef | None
    """Round trips of held-out sentences."""
    labels: LabelSource | None
    """Labels; some are for evaluation."""
    use: Use
    """Use of the labels."""
    questions: int
    """Maximum number of questions of a kind."""
    seed: int = 0
    """Seed of the choice of queries, and of the labelled rows for evaluation."""
    store: Annotated[str, NotInKey]
    """Store of the artifacts."""

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the held-out sentences, their round trips and the labelled rows."""
        store = Store(self.store)
        sentences = store.scan(self.passages).filter(pl.col("part") != TRAIN).collect()
        tables = {_PART: sentences}
        if self.trips is not None:
            tables[_TRIPS] = store.scan(self.trips).filter(pl.col("method").str.starts_with("bt-")).collect()
        if self.labels is not None:
            tables[_LABELS] = labelled_rows(store, self.passages, self.labels, use=self.use, seed=self.seed)
        elif not probes(sentences, tables.get(_TRIPS)):
            raise EvaluationError(f"{too_few(sentences)}. Or give labels.")
        return tables

    def sentences(self) -> pl.Series:
        """Return the queries and targets of all questions, and the labelled texts."""
        sides = sides_of(self.labels) if self.labels else []
        return pl.concat([_texts_of(self), *(rows_of(self)[_LABELS][side].alias("text") for side in sides)])


AnyText = OwnTextSet | HeldOutSet


def check_enough(site: RunContext, text: HeldOutSet) -> None:
    """Check before any training that held-out text suffices for an evaluation; a dry run has no text.

    Raises:
        EvaluationError: There are no labels and too few sentences or documents, or too few labels.
    """
    if site.open_store().defect(text.passages) is None:
        rows_of(text)


@lru_cache(maxsize=8)  # every system is scored on the same set
def questions_of(text: AnyText) -> Mapping[str, Retrieval]:
    """Return the questions about a text, by name; the same in every run."""
    rows = rows_of(text)
    return probes(rows[_PART], rows.get(_TRIPS), questions=text.questions, seed=text.seed)


def _texts_of(own_text: AnyText) -> pl.Series:
    """Return the queries and targets of all questions about a text."""
    texts = [text for probe in questions_of(own_text).values() for text in (*probe.queries, *probe.targets)]
    return pl.Series("text", texts, dtype=pl.String)


class OwnTextKind(DrawnKind[AnyText]):
    """Mean reciprocal rank of retrieval within the user's text."""

    measure: ClassVar[Mapping[str, object]] = {"by": "cosine"}

    @property
    def names(self) -> tuple[str, ...]:
        """The form of a name."""
        return (f"{SET_PREFIX}FILE",)

    @property
    def headline(self) -> tuple[str, ...]:
        """The only metric."""
        return (METRIC,)

    def knows(self, name: str) -> bool:
        """Whether the name begins with `own:`."""
        return name.startswith(SET_PREFIX)

    def find(self, site: RunContext, name: str) -> OwnTextSet:
        """Find the files.

        Raises:
            SourceError: no files, or no text column.
        """
        return OwnTextSet(dataset=name, sources=ReadingConfig().sources([name.removeprefix(SET_PREFIX)], site.mirror))

    def scores(
        self, site: RunContext, system: System, sets: tuple[AnyText, ...], config: ScoringConfig
    ) -> list[ScoresRef]:
        """Return one artifact for all sets."""
        return [score_own_text(site, system.embeddings, system.label, system.checkpoint, sets, config.bootstrap)]

    def draws(self, text: AnyText, systems: Sequence[Sequence[Vectors]], config: BootstrapConfig) -> list[SetDraws]:
        """Return the draws of each question on the same resamples of documents, and of labels.

        In means, a named text is one group; for held-out text, questions are one group and labels another.
        """
        found = list(question_draws(questions_of(text), systems, config))
        if isinstance(text, OwnTextSet):
            return [replace(one, dataset=text.dataset, split=one.dataset, group=text.dataset) for one in found]
        labels = text.labels
        if labels is None:
            return found
        rows = rows_of(text)[_LABELS].filter(part=JUDGE)
        return [*found, label_draws("your labels", rows, labels, systems, config)]


@stage(ref=ScoresRef, version=3)
def score_own_text(
    context: StageContext,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[AnyText, ...],
    config: BootstrapConfig,
) -> None:
    """Score a system on every question about own text."""
    figures = OwnTextKind().figures(sets, open_vectors(context.store, embeddings), ScoringConfig(bootstrap=config))
    publish_scores(context, figures, model, checkpoint, config.seed, f"Own text by {model}")


def question_draws(
    questions: Mapping[str, Retrieval], systems: Sequence[Sequence[Vectors]], config: BootstrapConfig
) -> Iterator[SetDraws]:
    """Return the scores of systems (vectors per seed) on each question about a text, on the same draws of documents."""
    from models.evaluation.sweep import SetDraws, outcome_draws

    for name, probe in questions.items():
        ranks = [np.stack([_ranks(encoder, probe) for encoder in seeds]) for seeds in systems]
        draws = outcome_draws(ranks, probe.unit, resamples=config.resamples, seed=config.seed)
        yield SetDraws(name, METRIC, "text", draws, n=len(probe))


def _ranks(encoder: Vectors, probe: Retrieval) -> NDArray[np.float64]:
    from models.evaluation.retrieval import reciprocal_ranks

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = encoder.features(pl.Series(texts), probe.name)
        return rows if isinstance(rows, np.ndarray) else rows.toarray().astype(np.float32)

    return reciprocal_ranks(encode, probe)
