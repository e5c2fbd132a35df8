"""Compare training methods on the user's text: a sweep with one budget per method, evaluated on held-out text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from prefect import flow
from prefect.runtime import flow_run

from flows.run_context import Site, announce_precision, command_of, fix_precision, run_context_of
from flows.sweep.method_runs import MethodInputs, MethodRun, StartEncoder, inapplicable, start_encoder_of
from flows.sweep.method_settings import FieldSettings, augmentation
from flows.sweep.methods import LABELS, PROBED, Method, methods_of
from flows.sweep.points import run_by_seed, with_runs
from models.views.config import AugmentConfig
from storage.artifacts.refs import SweepRef
from storage.sources.labels import LabelSource, label_source
from tasks.corpus.evaluation_sets import rows_of
from tasks.corpus.labels import summary_of
from tasks.corpus.passages import field_held, learnt, read_passages
from tasks.evaluation.kinds import available
from tasks.evaluation.own_text import HeldOutSet, questions_of
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
    asked_for = flow_run.parameters
    return f"field on {', '.join(asked_for['texts'])[:60]} from {asked_for['encoder']} · {str(flow_run.id)[:8]}"


@flow(name="bsl-field", flow_run_name=_run_name)
def field(
    texts: list[str],
    encoder: str = "embedded:bert-mini",
    labels: str | None = None,
    settings: FieldSettings | None = None,
    site: Site | None = None,
) -> SweepRef:
    """Try every method on a text; report the one to use, its certainty and its cost.

    Args:
        texts: Files, folders, patterns with `*`, embedded or declared datasets; formats may be mixed.
        encoder: Folder, Hub id, `embedded:` name, `checkpoint/<key>` or `report/<key>` that methods start from.
        labels: File of texts with classes or of pairs with scores; training on them is a separate method.
        settings: Methods, budget, seeds, bounds.
        site: Store, mirror and device; defaults to the worker's environment.
    """
    show_logs()
    place, chosen = run_context_of(site), settings or FieldSettings()
    announce_precision(place, {"training and encoding": chosen.precision})
    chosen = fix_precision(chosen, place)
    files, labelled = chosen.sources(texts, place.mirror), label_source(labels) if labels else None
    methods = requested(chosen, labelled)
    start = start_encoder_of(place, encoder)
    reasons = inapplicable(methods, start, chosen)
    tried = [method for method in methods if method.name not in reasons]
    if chosen.teacher is not None and any(method.taught for method in tried):
        start_encoder_of(place, chosen.teacher)  # a missing teacher raises before any training
    shared = _shared(place, files, labelled, chosen, start, tried)
    reasons |= _unproved(place, shared, tried)
    for name, reason in reasons.items():
        warn("%s is %s", name, reason)
    tried = [method for method in tried if method.name not in reasons]
    _make_views(place, shared, tried)
    here = place.model_copy(update={"pool": False})  # a work pool runs only recipes
    ended = run_by_seed({method.title: _jobs(shared, method) for method in tried}, here)
    systems = tuple(
        SweepSystem(label=method.title, faults=(reasons[method.name],))
        if method.name in reasons
        else with_runs(SweepSystem(label=method.title), ended[method.title])
        for method in methods
    )
    learnt_views = tuple(PROBED[views] for views in PROBED if any(method.views == views for method in tried))
    settings_of_page = SweepSettings(
        title=f"Which method helps on {', '.join(source.name for source in files)}, from {start.title}",
        config=chosen.bootstrap,
        own_text=OwnTextComparison(
            held_out=shared.text,
            corpus=shared.corpus,
            checks=shared.checks,
            may_forget=chosen.may_forget,
            sources=files,
        ),
        aside=(*learnt_views, *(check.name for check in shared.checks)),
        notes=_notes(place, shared, learnt_views),
        settings=chosen.model_dump_json(indent=1),
    )
    command = RunCommand(command=_command(texts, encoder, labels, chosen))
    return compare_systems(place, systems, settings_of_page, command)


def _command(texts: Sequence[str], encoder: str, labels: str | None, settings: FieldSettings) -> str:
    changed = settings.model_dump(mode="json", exclude_defaults=True, exclude={"budget"})
    options = {"encoder": encoder, "labels": labels, "budget": re.sub("[ ,]", "", settings.budget.spelled)}
    return command_of("field", texts, options, [f"{name}={json.dumps(value)}" for name, value in changed.items()])


def requested(settings: FieldSettings, labels: LabelSource | None) -> tuple[Method, ...]:
    """Return the methods to try; without labels, the method `labels` is left out.

    Raises:
        ValueError: the method `labels` is requested without labels.
    """
    if labels is None and LABELS in (settings.methods or ()):
        raise ValueError(f"method {LABELS!r} learns labels, and there are none; give a file of them, or leave it out")
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
    divided = read_passages(site, files, settings.hold_out)
    corpus = learnt(site, divided, labels, "field", 0)  # first, to refuse too few labels at once
    text = HeldOutSet(
        passages=divided,
        trips=_trips(site, divided, settings, methods),
        labels=labels,
        questions=settings.questions,
        store=site.abroad().store,
    )
    if not site.open_store().defect(divided):  # of a dry run
        rows_of(text)  # refuses too little text before any training
    checks = available(site, CHECKS).scored
    return MethodInputs(settings=settings, start=start, text=text, corpus=corpus, checks=checks)


def _trips(
    site: RunContext, divided: PassagesRef, settings: FieldSettings, methods: Sequence[Method]
) -> ViewsRef | None:
    """Return round trips of held-out sentences, as questions for methods that train on round trips; else None."""
    if all(method.views != "round trips" for method in methods):
        return None
    first = AugmentConfig(translations=settings.trips[:1], original=False)
    return augment(site, field_held(site, divided), first)


def _unproved(site: RunContext, shared: MethodInputs, methods: Sequence[Method]) -> dict[str, str]:
    """Return crop method → why it is not tried, if the text has only questions about views and no labels."""
    text = shared.text
    if text.labels is not None or site.open_store().defect(text.passages):
        return {}
    if questions_of(text).keys() - PROBED.values():
        return {}
    reason = "not tried: held-out text without titles and neighbours can only be asked what crops teach; give documents"
    return {method.name: f"{reason} of several sentences, or labels" for method in methods if method.views == "crops"}


def _make_views(site: RunContext, shared: MethodInputs, methods: Sequence[Method]) -> None:
    """Make the views that several methods learn from once, before workers would each make them."""
    for views in dict.fromkeys(method.views for method in methods):
        if views is not None and views != LABELS:
            augment(site, shared.corpus, augmentation(views, shared.settings))


def _jobs(shared: MethodInputs, method: Method) -> list[MethodRun]:
    """Return a run per seed; a single run for a method without training steps."""
    seeds = shared.settings.seeds if method.steps else 1
    return [MethodRun(inputs=shared, method=method.name, seed=seed) for seed in range(seeds)]


def _notes(site: RunContext, shared: MethodInputs, learnt_views: tuple[str, ...]) -> tuple[str, ...]:
    counts = site.open_store().manifest(shared.corpus).figures
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
        f"Rates are those for {shared.start.description}.",
    ]
    if learnt_views:
        views = " and ".join(f"{name}s" for name in learnt_views)
        notes.append(f"Shown and deciding nothing, for some methods have learnt from such: {views}.")
    return (*notes, *summary_of(counts, shared.text.labels))
