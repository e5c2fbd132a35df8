"""Any encoder adapted to somebody's own text, with proof: one line an artifact."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from prefect import flow
from prefect.runtime import flow_run

from flows.config import form_of, override
from flows.evaluation import differences, encoder_system, frozen_scores
from flows.recipes.adaptation import STSB, AdaptConfig, probes_of
from flows.run_context import command_of, computed, run_context_of, settled, tell_precision
from models.errors import EncoderError
from models.views.config import AugmentConfig
from storage.artifacts.refs import CorpusRef, PassagesRef, ReportRef, ViewsRef
from storage.assets.catalog import EMBEDDED
from storage.errors import SourceError
from storage.sources.labels import label_source
from tasks.adaptation import GeneralFigures, HeldOut, check_asked, merge, prove, settle, weigh
from tasks.corpus.evaluation_sets import resolve_scored_set
from tasks.corpus.passages import TITLES, learnt, read_passages, translated
from tasks.embedding.encoders import can_drop, check_learns, is_bare, resolve_encoder, taken_over
from tasks.evaluation.kinds import FoundSets, available_frozen, frozen_names
from tasks.evaluation.systems import Candidate
from tasks.reporting.adaptation import AdaptationArtifacts, AdaptationSettings, adaptation
from tasks.reporting.sections import Told
from tasks.stage.log_context import show_logs
from tasks.stage.run_context import RunContext
from tasks.training.train import train
from tasks.views.augment import augment
from tasks.views.pairs import pair_own

FEWEST_OTHERS = 200  # titles, from which on the held-out halves have some to ask for
SETTINGS = "settings.json"  # what the page has under *the complete settings*, in a file
if TYPE_CHECKING:
    AdaptOverrides = dict[str, Any]
else:
    AdaptOverrides = form_of(AdaptConfig)


def _run_name() -> str:
    given = flow_run.parameters
    config = AdaptConfig()
    with suppress(ValueError):  # the flow raises it, where Prefect makes a failed run of it
        config = override(config, given["config"] or {})
    start = given["encoder"] or config.encoder.model
    return f"adapt to {', '.join(given['texts'])[:60]} from {start} · {str(flow_run.id)[:8]}"


@flow(name="bsl-adapt", flow_run_name=_run_name)
def adapt(
    texts: list[str],
    encoder: str | None = None,
    labels: str | None = None,
    config: AdaptOverrides | None = None,
    site: RunContext | None = None,
) -> ReportRef:
    """Adapt an encoder to your text, prove that it is better there, and hand out the better one.

    Args:
        texts: Files (txt, csv, tsv, jsonl, parquet), folders, patterns with `*`, embedded data sets; formats mixed.
        encoder: Folder, Hub id, `embedded:` name, `checkpoint/<key>` or `report/<key>` to start from; unless given that
            of the settings, `embedded:mini-sentence`.
        labels: A file of scored pairs or of classes, which then decides.
        config: Fields of the settings to change, such as `{"training": {"max_steps": 200}}`.
        site: Store, mirror and device; by the worker's environment if absent.
    """
    show_logs()
    settings = override(AdaptConfig(), config or {})
    command = command_of("adapt", texts, {"encoder": encoder, "labels": labels, "config": SETTINGS if config else None})
    return run_adapt(texts, encoder or settings.encoder.model, labels, settings, run_context_of(site), command)


def run_adapt(
    texts: list[str], encoder: str, labels: str | None, config: AdaptConfig, site: RunContext, command: str = ""
) -> ReportRef:
    """The way of an adaptation; inside a flow run, each line is a task run."""
    config = config.model_copy(update={"encoder": config.encoder.model_copy(update={"model": encoder})})
    tell_precision(site, {"training": config.training.precision, "evaluation": config.evaluation.precision})
    config = settled(config, site)
    start, resolved = resolve_encoder(site, config.encoder)
    reading = taken_over(site, start, resolved)
    check_learns(start)
    if config.views == "dropout" and not can_drop(site, start):
        raise EncoderError(
            f"{encoder} is a table of words, which has no dropout, expected a transformer for --views dropout; learn "
            "crops (--views crops), or start from another encoder"
        )
    found = guards(site, config.evaluation.sets)
    dev = resolve_scored_set(site, config.evaluation.dev) if config.evaluation.dev else None
    own = config.sources(texts, site.mirror)
    labelled = label_source(labels) if labels else None

    passages = read_passages(site, own, config.hold_out)
    if labelled is None:
        check_asked(site, passages)  # what is too little is said before anything is translated
    corpus = learnt(site, passages, labelled, False, config.proof.seed)
    taught = config.taught(others=_has_others(site, passages))
    views = augment(site, corpus, config.views_of(taught))
    trips = _trips(site, passages, corpus, config, learn="round trips" in taught)
    pairs = pair_own(site, views, trips if "round trips" in taught else None, config.pairs(taught))
    learning = config.learning(reading, taught)
    trained = train(site, pairs, start, None, learning, config.trained(raw=is_bare(site, start)))

    held_out = HeldOut(passages=passages, trips=trips, labels=labelled, views=probes_of(taught), config=config.proof)
    weighing = weigh(site, held_out, start, trained, dev, reading)
    merged = merge(site, start, trained, weighing, reading)
    both = {"start": start, "adapted": merged}
    candidates = [Candidate(label=label, encoder=network, config=reading) for label, network in both.items()]
    systems = [
        encoder_system(site, candidate, found, computed(config.evaluation.precision, site)) for candidate in candidates
    ]
    scores = tuple(scores for system in systems for scores in frozen_scores(site, system, found, config.evaluation))
    compared = differences(site, systems[0], systems[1:], found, config.evaluation)
    general = GeneralFigures(scores=scores, comparisons=compared)
    proof = prove(site, held_out, start, merged, weighing, general, reading)
    adapted = settle(site, start, merged, proof)
    artifacts = AdaptationArtifacts(
        passages=passages,
        corpus=corpus,
        views=views,
        trips=trips,
        trained=trained,
        weighing=weighing,
        proof=proof,
        adapted=adapted,
    )
    described = AdaptationSettings(
        encoder=encoder,
        sources=own,
        labels=labelled,
        taught=taught,
        missing=tuple(found.missing),
        settings=config.model_dump_json(indent=1),
        translators=tuple(hop.model for hop in config.trip.hops) if config.trip else (),
    )
    return adaptation(site, artifacts, described, Told(command=command))


def guards(site: RunContext, names: tuple[str, ...]) -> FoundSets:
    """General sets that are asked what was forgotten: those that were named, and STS-B whatever they are.

    Raises:
        UnknownSuiteError, HubError: as `available_frozen`.
        SourceError: one that is named itself cannot be had, or none of a suite; of a suite others are left out.
    """
    wanted = frozen_names(names)
    held = {name.removeprefix(EMBEDDED) for name in wanted}
    found = available_frozen(site, wanted if STSB.removeprefix(EMBEDDED) in held else (*wanted, STSB))
    lost = [name for name in names if not any(own in found.sets for own in frozen_names((name,)))]
    if lost:
        why = found.missing[frozen_names((lost[0],))[0]]
        raise SourceError(
            f"{', '.join(lost)} cannot be had, expected every general set that is named, and of a suite one at least; "
            f"leave them out of --suite, or give a mirror that has them. Of the first: {why}"
        )
    return found


def _has_others(site: RunContext, passages: PassagesRef) -> bool:
    """Whether enough titles are left to prove by. What neighbours tell is known only once the start was asked."""
    if site.open_store().defect(passages):  # of a dry run, whose stages are as many either way
        return True
    return int(str(site.open_store().manifest(passages).figures[TITLES])) >= FEWEST_OTHERS


def _trips(
    site: RunContext, passages: PassagesRef, corpus: CorpusRef, config: AdaptConfig, *, learn: bool
) -> ViewsRef | None:
    """Round trips of some held-out sentences, and of learnt ones where they are views; None without a translator."""
    if config.trip is None:
        return None
    to_learn = config.translated if learn else 0
    some = translated(site, passages, corpus, to_learn, config.asked, config.hold_out.seed)
    return augment(site, some, AugmentConfig(translations=(config.trip,), original=False))
