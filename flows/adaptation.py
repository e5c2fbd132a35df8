"""Adapt an encoder to the user's text and evaluate it on held-out text: one line per artifact."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prefect.runtime import flow_run

from bsl.flows.checked_flow import flow, run_prefix
from bsl.flows.evaluation import encoder_system, frozen_scores
from bsl.flows.forms import settings_of
from bsl.flows.own_text import announce_lengths
from bsl.flows.recipes.adaptation import LABELS, STSB, AdaptConfig
from bsl.flows.run_context import Names, Site, announce_precision, command_of, fix_precision, run_context_of
from bsl.models.errors import EncoderError
from bsl.models.evaluation.uses import UseName, deciding_use
from bsl.models.evaluation.verdict import TO_LABEL_ROWS, no_labels
from bsl.models.views.config import AugmentConfig
from bsl.storage.artifacts.refs import CheckpointRef, CorpusRef, EmbeddingsRef, ProofRef, ReportRef, ViewsRef
from bsl.storage.errors import SourceError
from bsl.storage.filesystem.urls import Public
from bsl.storage.sources.labels import sources_and_labels
from bsl.storage.sources.own_text import SET_PREFIX
from bsl.tasks.adaptation import choose_encoder, choose_share, evaluate_adaptation, merge
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.corpus.labels import counts_line
from bsl.tasks.corpus.passages import corpus_sample, read_passages, training_corpus
from bsl.tasks.embedding.encoders import (
    check_learns,
    described_folder,
    is_bare,
    is_table,
    resolve,
    token_width_of,
)
from bsl.tasks.embedding.to_label import choose_to_label
from bsl.tasks.evaluation.kinds import FoundSets, available, copies_of, frozen_names
from bsl.tasks.evaluation.own_text import HeldOutSet, check_enough
from bsl.tasks.evaluation.systems import NamedEncoder
from bsl.tasks.figures import LabelCounts
from bsl.tasks.reporting.adaptation import AdaptationArtifacts, AdaptationContent, adaptation
from bsl.tasks.reporting.card import base_card
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.stage.log_context import show_logs
from bsl.tasks.stage.progress import announce, is_planning
from bsl.tasks.training.classifier import train_classifier
from bsl.tasks.training.train import check_objectives, train
from bsl.tasks.views.augment import augment
from bsl.tasks.views.pairs import pair_own, pair_own_labels

SETTINGS = "settings.json"  # file to save the page's section *the complete settings* in
if TYPE_CHECKING:
    from collections.abc import Callable

    from bsl.models.encoder.config import EncoderConfig
    from bsl.storage.sources.model_sources import ResolvedModel
    from bsl.tasks.stage.run_context import RunContext

    AdaptSettings = AdaptConfig
else:
    AdaptSettings = settings_of(AdaptConfig())


def _run_name() -> str:
    given = flow_run.parameters
    start = given["encoder"] or (given["config"] or AdaptConfig()).encoder.model
    return f"adapt to {', '.join(given['texts'])[:60]} from {start} · {run_prefix()}"


@flow(name="bsl-adapt", flow_run_name=_run_name)
def adapt(
    texts: Names,
    encoder: Public | None = None,
    labels: Public | None = None,
    config: AdaptSettings | None = None,
    site: Site | None = None,
    labels_only_judge: bool = False,
) -> ReportRef:
    """Adapt an encoder to your text; return the new encoder if it is better on held-out text, else the original.

    Args:
        texts: Files of text or tables, folders, patterns with `*`, embedded datasets; formats may differ.
        encoder: Original encoder: folder, Hub id, `embedded:` name, `checkpoint/<key>` or `report/<key>`; defaults to
            the encoder of the settings, `embedded:mini-sentence`.
        labels: A file of scored pairs or of texts with a class: training labels, and test labels for the verdict.
        config: Settings, or those to change, such as `{"training": {"max_steps": 200}}`.
        site: Store, mirror and device; defaults to the worker's environment.
        labels_only_judge: Train on views of the text instead; all labels decide the verdict.
    """
    show_logs()
    settings = config or AdaptConfig()
    given = {"encoder": encoder, "labels": labels, "config": SETTINGS if settings != AdaptConfig() else None}
    command = command_of("adapt", texts, given) + (" --labels-only-judge" if labels_only_judge else "")
    start = encoder or settings.encoder.model
    return run_adapt(texts, start, labels, settings, run_context_of(site), command, labels_only_judge=labels_only_judge)


def run_adapt(
    texts: list[str],
    encoder: str,
    labels: str | None,
    config: AdaptConfig,
    site: RunContext,
    command: str = "",
    *,
    labels_only_judge: bool = False,
) -> ReportRef:
    """Adapt an encoder and return the report; inside a flow run, each line is a task run."""
    use = config.use_of(labels=labels is not None, only_judge=labels_only_judge)
    on_labels = use == "adapt"
    config = config.model_copy(update={"encoder": config.encoder.model_copy(update={"model": encoder})})
    names = (LABELS,) if on_labels else config.view_names
    precision = (config.label_training if on_labels else config.training).precision
    announce_precision(site, {"training": precision, "evaluation": config.evaluation.precision})
    resolved = resolve(site, config.encoder)
    start, reading = resolved.encoder, resolved.config
    check_learns(start)
    table = is_table(site, start)
    if config.views == "dropout" and table:
        raise EncoderError(
            f"{encoder}: --views dropout needs a transformer (found a table of word vectors, which has no dropout). "
            "Use --views crops, or another encoder"
        )
    found = general_sets(site, config.evaluation.sets)
    dev = resolve_scored_set(site, config.evaluation.dev) if config.evaluation.dev else None
    general = resolve_scored_set(site, config.rehearsal_set) if on_labels and config.rehearsal_set else None
    sources, labelled = sources_and_labels(config, texts, labels, site.mirror)
    deciding = deciding_use(config.used_for, labelled.kind if labelled else None)

    passages = read_passages(site, sources, config.hold_out)
    announce_lengths(site, passages, config.hold_out)
    held_out = HeldOutSet(
        passages=passages,
        labels=labelled,
        use=use,
        questions=config.proof.questions,
        seed=config.proof.seed,
        store=site.abroad().store,
    )
    check_enough(site, held_out, deciding, names)
    if deciding is None:
        announce(no_labels(accept=config.accept))
    to_label = None
    if labelled is None:
        to_label = choose_to_label(site, sources, start, reading, TO_LABEL_ROWS, config.proof.seed)
    corpus = training_corpus(site, passages, labelled, use, config.proof.seed)
    own = corpus if config.rehearses_text else None
    if labelled is not None and not is_planning():
        counts = site.open_store().manifest(corpus).figures_as(LabelCounts)
        announce(f"labels: {counts_line(counts, labelled, use)}")
    views = trips = None
    if labelled is not None and on_labels:
        pairs = pair_own_labels(site, passages, labelled, use, config.proof.seed, general, own)
        training = config.label_training_for(labelled.kind, token_width_of(site, start), table=table)
    else:
        training = config.view_training(raw=is_bare(site, start), table=table)
        fits = partial(check_objectives, site, start, config.training_encoder(reading), [training])
        views = augment(site, corpus, config.augment)
        trips = _trips(site, corpus, config, fits) if "round trips" in names else None
        pairs = pair_own(site, views, trips, config.pairs)
    trained = train(site, pairs, start, None, config.training_encoder(reading), training)

    shares = config.proof.shares if on_labels else (config.proof.share,)
    weighing = choose_share(site, start, trained, dev, shares, config.proof.max_forgetting, reading)
    merged = merge(site, start, trained, weighing, reading)
    sets = FoundSets({f"{SET_PREFIX}{held_out.dataset}": held_out, **found.sets}, found.missing)
    proof, vectors = _evaluated(site, start, merged, reading, sets, config, deciding, names, to_label)
    adapted = choose_encoder(site, start, merged, proof, accept=config.accept)
    has_classes = labelled is not None and labelled.kind == "classes"
    classifier = train_classifier(site, vectors, adapted, held_out) if has_classes else None
    artifacts = AdaptationArtifacts(
        passages=passages,
        corpus=corpus,
        views=views,
        trips=trips,
        pairs=pairs,
        trained=trained,
        weighing=weighing,
        proof=proof,
        classifier=classifier,
        adapted=adapted,
        to_label=to_label,
    )
    described = AdaptationContent(
        encoder=encoder,
        sources=sources,
        labels=labelled,
        views=names,
        missing=tuple(found.missing),
        settings=fix_precision(config, site).model_dump_json(indent=1),
        translators=tuple(hop.model for hop in config.trip.hops) if config.trip else (),
        rehearsal=config.rehearsal_set if general else "",
        rehearses_text=labelled is not None and on_labels and own is not None,
        base=base_card(described_folder(site.open_store(), start)),
    )
    return adaptation(site, artifacts, described, RunCommand(command=command))


def _evaluated(
    site: RunContext,
    start: CheckpointRef | ResolvedModel,
    merged: CheckpointRef,
    reading: EncoderConfig,
    sets: FoundSets,
    config: AdaptConfig,
    deciding: UseName | None,
    views: tuple[str, ...],
    to_label: CorpusRef | None,
) -> tuple[ProofRef, tuple[EmbeddingsRef, EmbeddingsRef]]:
    """Compare the adapted encoder with the original on all sets; return also the vectors of both."""
    networks = {"start": start, "adapted": merged}
    candidates = [NamedEncoder(label=label, encoder=network, config=reading) for label, network in networks.items()]
    before, after = (encoder_system(site, candidate, sets, config.evaluation.precision) for candidate in candidates)
    undrawn = [
        scores
        for system in (before, after)
        for scores in frozen_scores(site, system, sets.undrawn(), config.evaluation)
    ]
    vectors, bootstrap = (before.embeddings, after.embeddings), config.evaluation.bootstrap
    proof = evaluate_adaptation(
        site,
        vectors,
        merged,
        sets.drawn,
        tuple(undrawn),
        bootstrap,
        config.proof.max_forgetting,
        deciding,
        views,
        to_label,
    )
    return proof, vectors


def general_sets(site: RunContext, names: tuple[str, ...]) -> FoundSets:
    """Find the general sets that measure forgetting: the named ones, and always STS-B.

    Raises:
        UnknownSuiteError, HubError: As for `frozen_names` and `available`.
        SourceError: A named set is missing, or all sets of a named suite; a suite may lack some of its sets.
    """
    sets = frozen_names(names)
    has_stsb = copies_of((STSB,)) <= copies_of(sets)
    found = available(site, sets if has_stsb else (*sets, STSB))
    missing = [name for name in names if copies_of(found.sets).isdisjoint(copies_of(frozen_names((name,))))]
    if missing:
        reason = found.missing[frozen_names((missing[0],))[0]]
        raise SourceError(
            f"{', '.join(missing)}: not available ({missing[0]}: {reason}). Correct or remove the name in --suite, or "
            "set --mirror to a folder with its files."
        )
    return found


def _trips(
    site: RunContext, corpus: CorpusRef, config: AdaptConfig, before_models: Callable[[], None]
) -> ViewsRef | None:
    """Return round trips of some training sentences; None without a translator."""
    if config.trip is None:
        return None
    sample = corpus_sample(site, corpus, config.translated, config.hold_out.seed)
    trips = AugmentConfig(translations=(config.trip,), original=False)
    return augment(site, sample, trips, before_models=before_models)
