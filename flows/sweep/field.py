"""Which method helps on this text: a table of methods, one text, one budget each, proved on what none has seen.

Methods share whatever they have in common, so one more costs itself alone, and a killed run goes on where it was. What
a method cannot do is said on the page; it does not end the others.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Final

from prefect import flow
from prefect.runtime import flow_run

from flows.run_context import command_of, run_context_of, settled, tell_precision
from flows.sweep.method_runs import MethodInputs, StartEncoder, inapplicable, run_method, start_encoder_of
from flows.sweep.method_settings import FieldSettings
from flows.sweep.methods import LABELS, PROBED, Method, methods_of
from models.errors import InterruptedRunError, ModelError, TranslationStoppedError
from models.views.config import AugmentConfig
from storage.artifacts.refs import SweepRef
from storage.sources.labels import LabelSource, label_source
from tasks.corpus.evaluation_sets import ScoredSet, rows_of
from tasks.corpus.labels import summary_of
from tasks.corpus.passages import learnt, read_passages
from tasks.evaluation.kinds import available
from tasks.evaluation.own_text import HeldOutSet, questions_of
from tasks.evaluation.own_text_sets import field_held
from tasks.reporting.provenance import RunCommand
from tasks.reporting.sweep.compare import compare_systems
from tasks.reporting.sweep.inputs import OwnTextComparison, SweepSettings
from tasks.reporting.sweep.system import SweepSystem
from tasks.stage.log_context import show_logs
from tasks.stage.progress import warn
from tasks.stage.run_context import RunContext
from tasks.views.augment import augment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.artifacts.refs import PassagesRef, ViewsRef
    from storage.sources.own_text import TextSource

logger = logging.getLogger(__name__)

CHECKS: Final = ("embedded:stsb/test",)


def _run_name() -> str:
    asked_for = flow_run.parameters
    return f"field on {', '.join(asked_for['texts'])[:60]} from {asked_for['encoder']} · {str(flow_run.id)[:8]}"


@flow(name="bsl-field", flow_run_name=_run_name)
def field(
    texts: list[str],
    encoder: str = "embedded:bert-mini",
    labels: str | None = None,
    settings: FieldSettings | None = None,
    site: RunContext | None = None,
) -> SweepRef:
    """Try every method on a text, and say which to use, how sure that is and what it costs.

    Args:
        texts: Files, folders, patterns with `*`, embedded or declared data sets; formats may be mixed.
        encoder: Folder, Hub id, `embedded:` name, `checkpoint/<key>` or `report/<key>` that methods start from.
        labels: File of texts with classes or of pairs with scores; what they add is a method of its own.
        settings: Methods, budget, seeds, bounds.
        site: Store, mirror and device; by the worker's environment if absent.
    """
    show_logs()
    place, chosen = run_context_of(site), settings or FieldSettings()
    tell_precision(place, {"training and encoding": chosen.precision})
    chosen = settled(chosen, place)
    files, labelled = located(place, texts, labels, chosen)
    methods = contested(chosen, labelled)
    origin = start_encoder_of(place, encoder)
    reasons = inapplicable(methods, origin, chosen)
    tried = tuple(method for method in methods if method.name not in reasons)
    if chosen.teacher is not None and any(method.taught for method in tried):
        start_encoder_of(place, chosen.teacher)  # or it would be missed only after most methods were trained
    shared = _shared(place, files, labelled, chosen, tried)
    reasons |= _unproved(shared, tried)
    for name, reason in reasons.items():
        warn("%s is %s", name, reason)
    tried = tuple(method for method in tried if method.name not in reasons)
    systems = tuple(_tried(shared, origin, method, reasons.get(method.name)) for method in methods)
    learnt_views = tuple(PROBED[views] for views in PROBED if any(method.views == views for method in tried))
    settings_of_page = SweepSettings(
        title=f"Which method helps on {', '.join(source.name for source in files)}, from {origin.title}",
        config=chosen.bootstrap,
        own_text=OwnTextComparison(
            held_out=shared.text,
            corpus=shared.corpus,
            learnt_views=learnt_views,
            checks=shared.checks,
            may_forget=chosen.may_forget,
            sources=files,
        ),
        notes=_notes(shared, origin, learnt_views),
        settings=chosen.model_dump_json(indent=1),
    )
    command = RunCommand(command=_command(texts, encoder, labels, chosen))
    return compare_systems(place, systems, settings_of_page, command)


def _command(texts: Sequence[str], encoder: str, labels: str | None, settings: FieldSettings) -> str:
    changed = settings.model_dump(mode="json", exclude_defaults=True, exclude={"budget"})
    options = {"encoder": encoder, "labels": labels, "budget": re.sub("[ ,]", "", settings.budget.spelled)}
    return command_of("field", texts, options, [f"{name}={json.dumps(value)}" for name, value in changed.items()])


def located(
    site: RunContext, texts: Sequence[str], labels: str | None, settings: FieldSettings
) -> tuple[tuple[TextSource, ...], LabelSource | None]:
    """The files, and what is read of them.

    Raises:
        SourceError: one of them is nowhere to be had, or nothing in it is text or a label.
    """
    return settings.sources(texts, site.mirror), label_source(labels) if labels else None


def contested(settings: FieldSettings, labels: LabelSource | None) -> tuple[Method, ...]:
    """The methods that can be tried.

    Raises:
        ValueError: labels are to be learnt and there are none.
    """
    methods = methods_of(settings.methods)
    if labels is not None:
        return methods
    if settings.methods is not None and LABELS in settings.methods:
        raise ValueError(f"method {LABELS!r} learns labels, and there are none; give a file of them, or leave it out")
    return tuple(method for method in methods if method.name != LABELS)


def _shared(
    site: RunContext,
    files: tuple[TextSource, ...],
    labels: LabelSource | None,
    settings: FieldSettings,
    methods: tuple[Method, ...],
) -> MethodInputs:
    """What all methods have in common."""
    divided = read_passages(site, files, settings.hold_out)
    corpus = learnt(
        site, divided, labels, "field", 0
    )  # first: labels that are too few end the run before it takes long
    text = HeldOutSet(
        passages=divided,
        trips=_trips(site, divided, settings, methods),
        labels=labels,
        questions=settings.questions,
        store=site.store,
    )
    if not site.open_store().defect(divided):  # of a dry run
        rows_of(text)  # too little text ends the run before anything is trained
    found = available(site, CHECKS).sets.values()
    return MethodInputs(
        site=site,
        settings=settings,
        text=text,
        corpus=corpus,
        checks=tuple(scored for scored in found if isinstance(scored, ScoredSet)),
    )


def _trips(
    site: RunContext, divided: PassagesRef, settings: FieldSettings, methods: tuple[Method, ...]
) -> ViewsRef | None:
    """Round trips of held-out sentences, where methods learn from round trips: it is seen whether they learnt it."""
    if all(method.views != "round trips" for method in methods):
        return None
    first = AugmentConfig(translations=settings.trips[:1], original=False)
    return augment(site, field_held(site, divided), first)


def _unproved(shared: MethodInputs, methods: tuple[Method, ...]) -> dict[str, str]:
    """Why methods that learn crops are not tried, by their names, where the text is asked nothing but crops."""
    text = shared.text
    if text.labels is not None or shared.site.open_store().defect(text.passages):
        return {}
    if questions_of(text).keys() - PROBED.values():
        return {}
    reason = "not tried: held-out text without titles and neighbours can only be asked what crops teach; give documents"
    return {method.name: f"{reason} of several sentences, or labels" for method in methods if method.views == "crops"}


def _tried(shared: MethodInputs, origin: StartEncoder, method: Method, reason: str | None) -> SweepSystem:
    """A method with its artifacts, or with why it has none."""
    if reason is not None:
        return SweepSystem(label=method.title, faults=(reason,))
    try:
        return run_method(shared, origin, method)
    except (InterruptedRunError, TranslationStoppedError):
        raise
    except ModelError as error:
        logger.warning("%s is left without figures: %s", method.title, error)
        return SweepSystem(label=method.title, faults=(str(error),))


def _notes(shared: MethodInputs, origin: StartEncoder, learnt_views: tuple[str, ...]) -> tuple[str, ...]:
    store = shared.site.open_store()
    counts = store.manifest(shared.corpus).figures
    settings = shared.settings
    pace = (
        "" if settings.budget.seconds is None else ", as steps by each method's own pace, measured once by timed steps"
    )
    asked_of = ", ".join(f"{len(asked)} of {name}" for name, asked in questions_of(shared.text).items())
    notes = [
        f"Learnt: {counts['sentences']:,} sentences, the same for every method. Held out from all: "
        f"{counts['held_out']:,}, in whole documents.",
        f"Asked of the held-out text: {asked_of}. Each is answered among all texts of its kind.",
        f"Budget of each method that trains: {settings.budget.spelled}{pace}. The last step is kept.",
        f"Rates are those for {origin.said}.",
    ]
    if learnt_views:
        views = " and ".join(f"{name}s" for name in learnt_views)
        notes.append(f"Shown and deciding nothing, for some methods have learnt from such: {views}.")
    return (*notes, *summary_of(counts, shared.text.labels))
