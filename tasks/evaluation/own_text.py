"""The user's text as evaluation sets: a sentence retrieves its neighbour, its title and the rest of itself.

The name of a set is `own:` and a text of `bsl adapt`: a file, a folder, a pattern or a dataset. All its sentences are
queries, so no encoder should have been trained on them. Runs on own text ask the same questions about held-out
documents, `HeldOutText`; so does `bsl adapt`, which also evaluates on labels, `HeldOutSet`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import polars as pl

from bsl.models.corpus.labels import JUDGE, OR_LABELS, TEACH, Use
from bsl.models.corpus.passages import HoldOutConfig, LeftOut, undivided
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.own_text import retrieval_questions, too_few
from bsl.models.evaluation.uses import RECIPROCAL_RANK, TEXT, UseName
from bsl.storage.artifacts.refs import PassagesRef
from bsl.storage.artifacts.store import Store
from bsl.storage.record import NotInKey
from bsl.storage.sources.labels import LabelSource
from bsl.storage.sources.own_text import SET_PREFIX, TextSource, text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.corpus.labels import TRAIN, labelled_rows, sides_of
from bsl.tasks.corpus.own_sentences import sentences_of
from bsl.tasks.evaluation.kind import FrozenKind
from bsl.tasks.evaluation.own_labels import label_draws
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from bsl.models.evaluation.config import BootstrapConfig
    from bsl.models.evaluation.retrieval import Retrieval
    from bsl.models.evaluation.sweep import SetDraws
    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)
_PART, _LABELS = "text", "labels"


class OwnTextSet(EvaluationSet):
    """Sentences of the user's files, in their order."""

    questions: ClassVar[int] = 1000
    """Maximum number of questions of a kind."""
    seed: ClassVar[int] = 0
    sources: tuple[TextSource, ...]
    rule: Literal[3] = 3
    """Version of the rule that divides text into documents and sentences, in keys."""

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the sentences in the form of `bsl.models.corpus.passages.undivided`."""
        config, left_out = HoldOutConfig(), LeftOut()
        table = sentences_of(self.sources, config, left_out, progress_of("reading, files"))
        if left_out.unreadable:
            logger.warning("%s: %s", self.dataset, left_out.unreadable_summary)
        sentences = undivided(table, config)
        if not retrieval_questions(sentences):
            raise EvaluationError(f"{self.dataset}: {too_few(sentences, left_out.summary(config))}.")
        return {_PART: sentences}

    def sentences(self) -> pl.Series:
        """Return the queries and targets of all questions."""
        return _texts_of(self)


class HeldOutText(EvaluationSet):
    """Held-out sentences of a run's own text."""

    questions: ClassVar[int] = OwnTextSet.questions
    seed: ClassVar[int] = OwnTextSet.seed
    dataset: str = "your text"
    passages: PassagesRef
    store: Annotated[str, NotInKey]

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the held-out sentences."""
        return {_PART: _held_out(self.store, self.passages)}

    def sentences(self) -> pl.Series:
        """Return the queries and targets of all questions."""
        return _texts_of(self)


class HeldOutSet(EvaluationSet):
    """Held-out sentences of a text for training, and labels."""

    removed: ClassVar[Mapping[str, object]] = {"trips": None}

    dataset: str = "your text"
    passages: PassagesRef
    labels: LabelSource | None
    use: Use
    questions: int
    """Maximum number of questions of a kind."""
    seed: int = 0
    """Seed of the choice of queries, and of the labelled rows for evaluation."""
    store: Annotated[str, NotInKey]

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the held-out sentences and the labelled rows."""
        sentences = _held_out(self.store, self.passages)
        tables = {_PART: sentences}
        if self.labels is not None:
            tables[_LABELS] = labelled_rows(Store(self.store), self.passages, self.labels, use=self.use, seed=self.seed)
        elif not retrieval_questions(sentences):
            raise EvaluationError(f"{too_few(sentences)}. {OR_LABELS}")
        return tables

    def sentences(self) -> pl.Series:
        """Return the queries and targets of all questions, and the labelled texts."""
        sides = sides_of(self.labels) if self.labels else []
        return pl.concat([_texts_of(self), *(rows_of(self)[_LABELS][side].alias("text") for side in sides)])


def most_frequent_share(sets: Mapping[str, EvaluationSet]) -> float:
    """Return the share of the most frequent class in the test labels of a held-out set; 0 without such labels."""
    labelled = (one for one in sets.values() if isinstance(one, HeldOutSet) and one.labels is not None)
    tables = [rows_of(one)[_LABELS] for one in labelled if one.labels is not None and one.labels.kind == "classes"]
    classes = [table.filter(part=JUDGE)["label"] for table in tables]
    return max((max(one.value_counts(normalize=True)["proportion"]) for one in classes), default=0.0)


AnyText = OwnTextSet | HeldOutText | HeldOutSet


def _held_out(store: str, passages: PassagesRef) -> pl.DataFrame:
    return Store(store).scan(passages).filter(pl.col("part") != TRAIN).collect()


def check_enough(site: RunContext, text: HeldOutSet, deciding: UseName | None, views: Sequence[str]) -> None:
    """Check before any training that held-out text suffices for an evaluation; a dry run has no text.

    Raises:
        EvaluationError: There are no labels and too few sentences or documents, or too few labels; or search decides,
            and no question about the text may decide it.
    """
    if site.open_store().defect(text.passages) is not None:
        return
    rows = rows_of(text)
    if deciding != "search":
        return
    questions = questions_of(text)
    if not questions:
        raise EvaluationError(f"--for search: {too_few(rows[_PART])}.")
    if {*questions} <= questions_like(views):
        raise EvaluationError(
            "--for search: the only questions about this text resemble the training (found questions about halves of "
            "sentences and training on crops, expected other questions). Give text with titles or with documents of "
            "several sentences, or train on other views: --views round-trips"
        )


def questions_like(views: Sequence[str]) -> frozenset[str]:
    """Return the kinds of questions that resemble the training on some views: these say nothing about search."""
    return frozenset({"crop"} if "crops" in views else ())


@lru_cache(maxsize=8)  # every system is scored on the same set
def questions_of(text: AnyText) -> Mapping[str, Retrieval]:
    """Return the questions about a text, by name; the same in every run."""
    return retrieval_questions(rows_of(text)[_PART], questions=text.questions, seed=text.seed)


def _texts_of(own_text: AnyText) -> pl.Series:
    """Return the queries and targets of all questions about a text."""
    texts = [text for probe in questions_of(own_text).values() for text in (*probe.queries, *probe.targets)]
    return pl.Series("text", texts, dtype=pl.String)


class OwnTextKind(FrozenKind[AnyText]):
    """Mean reciprocal rank of retrieval within the user's text."""

    title = "Own text"
    measure: ClassVar = {"by": "cosine"}
    names = (f"{SET_PREFIX}FILE",)
    headline = (RECIPROCAL_RANK,)

    def knows(self, name: str) -> bool:
        """Whether the name begins with `own:`."""
        return name.startswith(SET_PREFIX)

    def find(self, site: RunContext, name: str) -> OwnTextSet:
        """Find the files.

        Raises:
            SourceError: no files, or no text column.
        """
        return OwnTextSet(
            dataset=name, sources=text_sources(ReadingConfig(), [name.removeprefix(SET_PREFIX)], site.mirror)
        )

    def draws(self, text: AnyText, systems: Sequence[Sequence[Vectors]], config: BootstrapConfig) -> list[SetDraws]:
        """Return the draws of each question on the same resamples of documents, and of labels.

        In means, a named text is one group; for held-out text, questions are one group and labels another.
        """
        found = list(question_draws(questions_of(text), systems, config))
        if not isinstance(text, HeldOutSet):
            return [replace(one, dataset=text.dataset, split=one.dataset, group=text.dataset) for one in found]
        labels = text.labels
        if labels is None:
            return found
        rows, learnt = (rows_of(text)[_LABELS].filter(part=part) for part in (JUDGE, TEACH))
        training = None if learnt.is_empty() else learnt
        return [*found, *label_draws("your labels", rows, labels, systems, config, training)]


def question_draws(
    questions: Mapping[str, Retrieval], systems: Sequence[Sequence[Vectors]], config: BootstrapConfig
) -> Iterator[SetDraws]:
    """Return the scores of systems (vectors per seed) on each question about a text, on the same draws of documents."""
    from bsl.models.evaluation.sweep import SetDraws, outcome_draws

    for name, probe in questions.items():
        ranks = [np.stack([_ranks(encoder, probe) for encoder in seeds]) for seeds in systems]
        draws = outcome_draws(ranks, probe.unit, resamples=config.resamples, seed=config.seed)
        yield SetDraws(name, RECIPROCAL_RANK, TEXT, draws, n=len(probe))


def _ranks(encoder: Vectors, probe: Retrieval) -> NDArray[np.float64]:
    from bsl.models.evaluation.retrieval import reciprocal_ranks

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = encoder.features(pl.Series(texts), probe.name)
        return rows if isinstance(rows, np.ndarray) else rows.toarray().astype(np.float32)

    return reciprocal_ranks(encode, probe)
