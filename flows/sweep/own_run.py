"""Read the user's text and declare the study `own` on it; the settings of its comparison."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bsl.flows.own_text import OwnText, own_text
from bsl.flows.pipeline import Run
from bsl.flows.recipes.shared import with_fields
from bsl.flows.sweep.own import CROP, KINDS, LABELS, SMALL, START, TABLE, TRAINED, Start, declared, own_config
from bsl.storage.filesystem.model_folder import settings_of
from bsl.tasks.corpus.evaluation_sets import ScoredSet
from bsl.tasks.corpus.labels import counts_line, split_of
from bsl.tasks.embedding.encoders import check_learns, described_folder, is_bare, is_table, resolve
from bsl.tasks.figures import LabelCounts, OwnCorpusFigures
from bsl.tasks.reporting.sweep.inputs import OwnTextComparison
from bsl.tasks.reporting.sweep.system import SYSTEMS
from bsl.tasks.stage.progress import announce, warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.flows.own_options import OwnRequest
    from bsl.flows.sweep.points import Outcome
    from bsl.flows.sweep.studies import Study
    from bsl.tasks.reporting.sweep.inputs import SweepSettings
    from bsl.tasks.stage.run_context import RunContext

_MAY_FORGET: Final = 0.005  # largest loss on a general set, as of `bsl adapt`: half a point


@dataclass(frozen=True)
class OwnStudy:
    """The study on the user's text."""

    study: Study
    text: OwnText
    deciding: tuple[str, ...]
    notes: tuple[str, ...]

    def compared(self, settings: SweepSettings, outcomes: Mapping[str, Sequence[Outcome]]) -> SweepSettings:
        """Return the settings of the comparison, with the text and what decides the advice.

        No point may lose on the general sets of `settings`; those of scored pairs count.
        """
        reports = {label: first.report for label, (first, *_) in outcomes.items() if isinstance(first, Run)}
        own_text = OwnTextComparison(
            passages=self.text.passages,
            corpus=self.text.corpus,
            sources=self.text.sources,
            labels=self.text.labels,
            deciding=self.deciding,
            checks=tuple(found.name for found in settings.sets.values() if isinstance(found, ScoredSet)),
            may_forget=_MAY_FORGET,
            reports=reports,
        )
        return with_fields(
            settings,
            axis=SYSTEMS,
            sets={**self.text.sets, **settings.sets},
            references=(START, *(label for label in settings.references if label != START)),
            own_text=own_text,
            notes=self.notes,
        )


def own_study(site: RunContext, request: OwnRequest, changes: Mapping[str, Any]) -> OwnStudy:
    """Read the text and declare the study; a point that cannot be tried is named in a warning and a note.

    Raises:
        SourceError, AssetError, ArtifactMissingError: The text or the encoder does not exist.
        EmptyCorpusError, EvaluationError: There is too little text, or there are too few labels.
        ValueError: A field or value is invalid.
    """
    base = own_config(request, changes, site.mirror)
    encoder = resolve(site, base.encoder, base.words).encoder
    check_learns(encoder)
    kind = TABLE if is_table(site, encoder) else TRAINED
    if is_bare(site, encoder):
        settings = json.loads((settings_of(described_folder(site.open_store(), encoder)) / "config.json").read_text())
        kind = 0 if settings.get("hidden_size", SMALL + 1) <= SMALL else 1
    text = own_text(site, base.ingest)
    assert text is not None  # `own_config` sets it
    start = Start(kind, text.questions)
    study, reasons = declared(base, request, start)
    for reason in reasons:
        warn("%s", reason)
    notes = _notes(site, text, start)
    if text.labels is not None:
        announce(notes[-1])
    deciding = [name for name in text.questions if name != CROP] or text.questions
    names = (LABELS,) if text.labels else tuple(f"your text {name}" for name in deciding)
    return OwnStudy(study, text, names, (*reasons, *notes))


def _notes(site: RunContext, text: OwnText, start: Start) -> tuple[str, ...]:
    manifest = site.open_store().manifest(text.corpus)
    corpus, counts = manifest.figures_as(OwnCorpusFigures), manifest.figures_as(LabelCounts)
    decides = "Questions decide, and their gains do not predict gains on labels. With --labels, labels decide."
    if text.labels is not None:
        decides = "Labels decide. Questions are reported only, because their gains do not predict gains on labels."
    elif CROP in text.questions and len(text.questions) > 1:
        decides += " Questions about crops are reported only, because a point trains on crops."
    return (
        f"Training text: {corpus.sentences:,} sentences, the same for every point. Held-out text: "
        f"{corpus.held_out:,} sentences, in complete documents. No point is trained on held-out sentences or on "
        "sentences of test labels.",
        "Every point trains for the same number of steps; its checkpoint is the last step. Learning rates are those "
        f"for {KINDS[start.kind]}.",
        decides,
        *([split_of(counts, text.labels)] if text.labels else []),
        *([f"Labels: {counts_line(counts, text.labels, 'adapt')}."] if text.labels else []),
    )
