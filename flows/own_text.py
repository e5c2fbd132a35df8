"""The user's text in a run: sentences to train on, held-out documents, test labels and training labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bsl.models.corpus.labels import OR_LABELS
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.own_text import too_few
from bsl.models.views.pairs import REHEARSAL
from bsl.storage.sources.labels import SET_PREFIX as LABELS_PREFIX
from bsl.storage.sources.labels import LabelSource, sources_and_labels
from bsl.storage.sources.own_text import SET_PREFIX, TextSource
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, resolve_scored_set, rows_of
from bsl.tasks.corpus.passages import lengths_line, read_passages, training_corpus
from bsl.tasks.evaluation.own_labels import HeldOutLabels
from bsl.tasks.evaluation.own_text import HeldOutText, questions_of
from bsl.tasks.figures import PassagesFigures
from bsl.tasks.stage.progress import announce, is_planning
from bsl.tasks.views.pairs import pair_own_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.models.corpus.passages import HoldOutConfig
    from bsl.models.training.config import TrainingConfig
    from bsl.storage.artifacts.refs import CorpusRef, PairsRef, PassagesRef
    from bsl.tasks.corpus.config import IngestConfig
    from bsl.tasks.stage.run_context import RunContext

_SEED: Final = 0  # of the labelled rows for evaluation, as the default of `bsl adapt`


@dataclass(frozen=True)
class OwnText:
    """The user's text, divided as in `bsl adapt`: no held-out sentence and no sentence of a test label is trained on.

    `sets` has held-out text if there are questions about it, and test labels if there are labels.
    """

    sources: tuple[TextSource, ...]
    labels: LabelSource | None
    passages: PassagesRef
    corpus: CorpusRef
    sets: Mapping[str, EvaluationSet]
    questions: tuple[str, ...]

    def label_pairs(self, site: RunContext, training: TrainingConfig) -> PairsRef:
        """Make training pairs of labels, and of general and own sentences if the objective keeps their vectors."""
        assert self.labels is not None  # checked by the configuration
        is_anchored = bool(training.objective.nullable)
        general = resolve_scored_set(site, REHEARSAL) if is_anchored else None
        own = self.corpus if is_anchored else None
        return pair_own_labels(site, self.passages, self.labels, "adapt", _SEED, general, own)


def own_text(site: RunContext, ingest: IngestConfig) -> OwnText | None:
    """Read the sources as the user's text; None if the configuration reads them as a corpus.

    Raises:
        SourceError, AssetError: A file is missing or unreadable.
        EmptyCorpusError, EvaluationError: There is too little text, or there are too few labels.
    """
    if ingest.own_text is None:
        return None
    addresses = [spec.address for spec in ingest.sources]
    sources, labels = sources_and_labels(ingest.own_text, addresses, ingest.own_text.labels, site.mirror)
    passages = read_passages(site, sources, ingest.own_text.hold_out)
    announce_lengths(site, passages, ingest.own_text.hold_out)
    corpus = training_corpus(site, passages, labels, "adapt", _SEED)  # too few labels raise here
    store = site.abroad().store
    text = HeldOutText(passages=passages, store=store)
    is_planned = site.open_store().defect(passages) is not None  # in a dry run there are no questions yet
    questions = () if is_planned else tuple(questions_of(text))
    if not questions and labels is None and not is_planned:
        (held_out,) = rows_of(text).values()
        raise EvaluationError(f"{too_few(held_out)}. {OR_LABELS}")
    sets: dict[str, EvaluationSet] = {}
    if questions or is_planned:
        sets[f"{SET_PREFIX}{text.dataset}"] = text
    if labels is not None:
        tested = HeldOutLabels(labels=labels, passages=passages, store=store)
        sets[f"{LABELS_PREFIX}{tested.dataset}"] = tested
    return OwnText(sources, labels, passages, corpus, sets, questions)


def announce_lengths(site: RunContext, passages: PassagesRef, config: HoldOutConfig) -> None:
    """Announce how many records and sentences of the text were dropped; nothing if none were."""
    if is_planning():
        return
    found = site.open_store().manifest(passages).figures_as(PassagesFigures)
    if line := lengths_line(found, config):
        announce(line)
