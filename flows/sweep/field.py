"""Compare training methods on the user's text: one budget per method, evaluated on held-out text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from prefect import flow
from prefect.runtime import flow_run

from flows.run_context import Names, Site, announce_precision, command_of, fix_precision, run_context_of
from flows.sweep.method_runs import MethodInputs, MethodRun, StartEncoder, inapplicable, start_encoder_of
from flows.sweep.method_settings import FieldSettings, augmentation
from flows.sweep.methods import LABELS, PROBED, Method, methods_of
from flows.sweep.points import run_points, with_runs
from models.evaluation.own_text import QUESTIONS
from models.objectives.config import DistilConfig
from models.views.config import AugmentConfig
from storage.artifacts.refs import SweepRef
from storage.sources.labels import LabelSource, label_source
from tasks.corpus.labels import summary_of
from tasks.corpus.passages import held_out_corpus, read_passages, training_corpus
from tasks.evaluation.kinds import available
from tasks.evaluation.own_text import HeldOutSet, check_enough, questions_of
from tasks.reporting.provenance import RunCommand
from tasks.reporting.sweep.compare import compare_systems
from tasks.reporting.sweep.inputs import OwnTextComparison, SweepSettings
from tasks.reporting.sweep.system import SweepSystem
from tasks.stage.log_context import show_logs
from tasks.stage.progress import warn
from tasks.views.augment import augment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.artifacts.refs import PassagesRef, ViewsRef
    from storage.sources.own_text import TextSource
    from tasks.stage.run_context import RunContext

CHECKS: Final = ("embedded:stsb/test",)


def _run_name() -> str:
    given = flow_run.parameters
    return f"field on {', '.join(given['texts'])[:60]} from {given['encoder']} · {str(flow_run.id)[:8]}"


@flow(name="bsl-field", flow_run_name=_run_name)
def field(
    texts: Names,
    encoder: str = "embedded:bert-mini",
    labels: str | None = None,
    settings: FieldSettings | None = None,
    site: Site | None = None,
) -> SweepRef:
    """Try every method on a text; report which method to use, how certain its gain is, and its cost.

    Args:
        texts: Files, folders, patterns with `*`, embedded or declared datasets; formats may be mixed.
        encoder: Original encoder: folder, Hub id, `embedded:` name, `checkpoint/<key>` or `report/<key>`.
        labels: File of texts with a class or of scored pairs; training on them is a separate method.
        settings: Methods, budget, seeds, bounds.
        site: Store, mirror and device; defaults to the worker's environment.
    """
    show_logs()
    context, chosen = run_context_of(site), settings or FieldSettings()
    announce_precision(context, {"training and encoding": chosen.precision})
    chosen = fix_precision(chosen, context)
    files, labelled = chosen.sources(texts, context.mirror), label_source(labels) if labels else None
    methods = requested(chosen, labelled)
    start = start_encoder_of(context, encoder)
    reasons = inapplicable(methods, start, chosen)
    tried = [method for method in methods if method.name not in reasons]
    if chosen.teacher is not None and any(isinstance(method.objective, DistilConfig) for method in tried):
        start_encoder_of(context, chosen.teacher)  # a missing teacher raises before any training
    shared = _shared(context, files, labelled, chosen, start, tried)
    reasons |= _not_testable(context, shared, tried)
    for name, reason in reasons.items():
        warn("%s is %s", name, reason)
    tried = [method for method in tried if method.name not in reasons]
    for views in dict.fromkeys(method.views for method in tried):  # else each worker would make them
        if views is not None and views != LABELS:
            augment(context, shared.corpus, augmentation(views, chosen))
    without_pool = context.model_copy(update={"pool": False})  # a work pool runs only recipes
    jobs = {
        method.title: [
            MethodRun(inputs=shared, method=method.name, seed=seed)
            for seed in range(chosen.seeds if method.steps else 1)  # other methods do not depend on the seed
        ]
        for method in tried
    }
    outcomes = run_points(jobs, without_pool)
    systems = tuple(
        SweepSystem(label=method.title, faults=(reasons[method.name],))
        if method.name in reasons
        else with_runs(SweepSystem(label=method.title), outcomes[method.title])
        for method in methods
    )
    trained_views = tuple(PROBED[views] for views in PROBED if any(method.views == views for method in tried))
    shown_only = trained_views if shared.text.labels is None else tuple(QUESTIONS)
    page_settings = SweepSettings(
        title=f"Which method helps on {', '.join(source.name for source in files)}, from {start.title}",
        config=chosen.bootstrap,
        own_text=OwnTextComparison(
            held_out=shared.text,
            corpus=shared.corpus,
            checks=shared.checks,
            may_forget=chosen.may_forget,
            sources=files,
        ),
        aside=(*shown_only, *(check.name for check in shared.checks)),
        notes=_notes(context, shared, trained_views),
        settings=chosen.model_dump_json(indent=1),
    )
    command = RunCommand(command=_command(texts, encoder, labels, chosen))
    return compare_systems(context, systems, page_settings, command)


def _command(texts: Sequence[str], encoder: str, labels: str | None, settings: FieldSettings) -> str:
    changed = settings.model_dump(mode="json", exclude_defaults=True, exclude={"budget"})
    options = {"encoder": encoder, "labels": labels, "budget": re.sub("[ ,]", "", settings.budget.spelled)}
    return command_of("field", texts, options, [f"{name}={json.dumps(value)}" for name, value in changed.items()])


def requested(settings: FieldSettings, labels: LabelSource | None) -> tuple[Method, ...]:
    """Return the methods to try; without labels, the method `labels` is excluded.

    Raises:
        ValueError: The method `labels` is requested without labels.
    """
    if labels is None and LABELS in (settings.methods or ()):
        raise ValueError(f"method {LABELS!r} needs a file of labels. Add --labels FILE, or remove it from --methods")
    return tuple(method for method in methods_of(settings.methods) if labels is not None or method.name != LABELS)


def _shared(
    site: RunContext,
    files: tuple[TextSource, ...],
    labels: LabelSource | None,
    settings: FieldSettings,
    start: StartEncoder,
    methods: Sequence[Method],
) -> MethodInputs:
    """Make the inputs that all methods share."""
    passages = read_passages(site, files, settings.hold_out)
    corpus = training_corpus(site, passages, labels, "field", 0)  # too few labels raise here
    text = HeldOutSet(
        passages=passages,
        trips=_trips(site, passages, settings, methods),
        labels=labels,
        use="field",
        questions=settings.questions,
        store=site.abroad().store,
    )
    check_enough(site, text)
    checks = available(site, CHECKS).scored
    return MethodInputs(settings=settings, start=start, text=text, corpus=corpus, checks=checks)


def _trips(
    site: RunContext, passages: PassagesRef, settings: FieldSettings, methods: Sequence[Method]
) -> ViewsRef | None:
    """Return round trips of held-out sentences, for questions; None if no method trains on round trips."""
    if all(method.views != "round trips" for method in methods):
        return None
    first = AugmentConfig(translations=settings.trips[:1], original=False)
    return augment(site, held_out_corpus(site, passages), first)


def _not_testable(site: RunContext, shared: MethodInputs, methods: Sequence[Method]) -> dict[str, str]:
    """Return crop method → why it is not tried, if the text has only questions about views and no labels."""
    text = shared.text
    if text.labels is not None or site.open_store().defect(text.passages):
        return {}
    if questions_of(text).keys() - PROBED.values():
        return {}
    reason = (
        "not tried: the held-out text has no titles and no neighbouring sentences, so its only questions are about "
        "views that this method trains on. Add documents of several sentences, or labels"
    )
    return {method.name: reason for method in methods if method.views == "crops"}


def _notes(site: RunContext, shared: MethodInputs, trained_views: tuple[str, ...]) -> tuple[str, ...]:
    counts = site.open_store().manifest(shared.corpus).figures
    settings = shared.settings
    pace = "" if settings.budget.seconds is None else ", converted to steps at the pace of each method, measured once"
    questions = ", ".join(f"{len(retrieval)} {name}" for name, retrieval in questions_of(shared.text).items())
    notes = [
        f"Training text: {counts['sentences']:,} sentences, the same for every method. Held-out text: "
        f"{counts['held_out']:,} sentences, in complete documents.",
        f"Questions about the held-out text: {questions}. Each is answered among all texts of its kind.",
        f"Budget of each method that trains: {settings.budget.spelled}{pace}. The checkpoint is the last step.",
        f"Learning rates are those for {shared.start.description}.",
    ]
    if shared.text.labels is not None:
        notes.append("Labels decide. Questions are reported only, because their gains do not predict gains on labels.")
    else:
        notes.append("Questions decide, and their gains do not predict gains on labels. With --labels, labels decide.")
        if trained_views:
            views = " and ".join(f"{name}s" for name in trained_views)
            notes.append(f"Reported only, because some methods train on such views: {views}.")
    return (*notes, *summary_of(counts, shared.text.labels))
