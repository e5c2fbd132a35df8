"""Score encoders without training or a corpus, and compare several encoders with the first."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from prefect.runtime import flow_run

from bsl.flows.checked_flow import flow
from bsl.flows.run_context import Names, Site, announce_precision, run_context_of
from bsl.models.evaluation.sweep import enough_draws
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.assets.embedded import EMBEDDED
from bsl.tasks.embedding.embed import TITLE, embed, embed_tfidf
from bsl.tasks.embedding.transforms import fit_on_sets, fit_transform, fold_transform, transform
from bsl.tasks.evaluation.comparison import compare
from bsl.tasks.evaluation.config import EvaluationSettings
from bsl.tasks.evaluation.kind import FrozenKind
from bsl.tasks.evaluation.kinds import available, kind_of, names_of, score, tables
from bsl.tasks.evaluation.systems import NamedEncoder, System, find_encoder_systems
from bsl.tasks.evaluation.taught_rows import taught_notes
from bsl.tasks.reporting.evaluation import Missing, summarise
from bsl.tasks.stage.log_context import show_logs

if TYPE_CHECKING:
    from bsl.models.evaluation.config import ScoringConfig
    from bsl.models.runtime.precision import Precision
    from bsl.storage.artifacts.refs import ComparisonRef, CorpusRef, ScoresRef
    from bsl.tasks.evaluation.kinds import FoundSets
    from bsl.tasks.settings import RunSettings
    from bsl.tasks.stage.run_context import RunContext


def _run_name() -> str:
    given = flow_run.parameters
    return f"{', '.join(given['models'])} on {', '.join(given['suite'])}"


@flow(name="bsl-evaluate", flow_run_name=_run_name)
def evaluation(
    models: Names, suite: Names, config: EvaluationSettings | None = None, site: Site | None = None
) -> ArtifactRef:
    """Score encoders on the papers' sets. A set that is missing, or that the Hub does not deliver, is listed.

    Args:
        models: Folders, Hub ids, `embedded:` names, `checkpoint/<key>` or `report/<key>`; each is compared with the
            first.
        suite: Suites such as `sts`, `senteval`, `all`; sets such as `stsb/dev` or `trec`; `stsb-supervised` and the
            other protocols that fine-tune.
        config: Precision, bootstrap, and the pooling of bare transformers.
        site: Store, mirror and device; defaults to the worker's environment.
    """
    show_logs()
    settings = config or EvaluationSettings()
    context = run_context_of(site)
    announce_precision(context, {"evaluation": settings.precision})
    names = names_of(suite)
    candidates = find_encoder_systems(context, models, settings.reading, settings.precision)
    found = available(context, names, skip_failed_downloads=True)

    embedded = candidates if found.embedded() else []
    systems = [encoder_system(context, candidate, found, settings.precision) for candidate in embedded]
    scores = [
        *(scores for system in systems for scores in frozen_scores(context, system, found, settings)),
        *(
            scores
            for candidate in candidates
            for kind, sets in found.tuned()
            for scores in kind.scores(context, candidate, sets, settings)
        ),
    ]
    compared = differences(context, systems[0], systems[1:], found, settings) if systems else ()
    store, sets = context.open_store(), found.sets.values()
    notes = tuple(note for one in candidates for note in taught_notes(store, one.label, one.encoder, sets))
    return summarise(context, tuple(scores), compared, Missing.of(found.missing), notes, tables())


def encoder_system(site: RunContext, candidate: NamedEncoder, found: FoundSets, precision: Precision) -> System:
    """Embed the sets with an encoder; return it as a system to score."""
    vectors = embed(site, candidate.encoder, found.embedded(), candidate.config, precision)
    return System(candidate.label, candidate.checkpoint, vectors)


def run_systems(
    site: RunContext, corpus: CorpusRef, candidates: list[NamedEncoder], found: FoundSets, config: RunSettings
) -> list[System]:
    """Return the systems that a run reports: TF-IDF, its encoders, and its encoders after the transform, if any."""
    encoders = [encoder_system(site, candidate, found, config.evaluation.precision) for candidate in candidates]
    transformed = [
        after
        for candidate, system in zip(candidates, encoders, strict=True)
        for after in posthoc_systems(site, candidate, system, corpus, found, config)
    ]
    tfidf = System(TITLE, "", embed_tfidf(site, corpus, found.embedded()))  # fitted on the corpus
    return [tfidf, *encoders, *transformed]


def frozen_scores(site: RunContext, system: System, found: FoundSets, config: ScoringConfig) -> list[ScoresRef]:
    """Score a system's vectors on every kind of set that needs no fine-tuning."""
    return [
        score(site, system.embeddings, system.label, system.checkpoint, kind.title, covered, config.bootstrap, probe)
        for kind, sets in found.frozen()
        if (covered := system.of(sets))
        for probe in [config.probe if kind.probes else None]
    ]


def differences(
    site: RunContext, first: System, others: list[System], found: FoundSets, config: ScoringConfig
) -> tuple[ComparisonRef, ...]:
    """Compare each other system with the first (other minus first), on the sets of all kinds with draws.

    Many systems get more draws, so that a difference can pass Holm's correction.
    """
    resamples = enough_draws(config.bootstrap.resamples, len(others))
    bootstrap = config.bootstrap.model_copy(update={"resamples": resamples})
    sets = {other: {name: drawn for name, drawn in found.drawn.items() if other.of((drawn,))} for other in others}
    return tuple(
        compare(site, first.embeddings, other.embeddings, (first.label, other.label), compared_sets, bootstrap)
        for other, compared_sets in sets.items()
        if compared_sets
    )


def posthoc_systems(
    site: RunContext, candidate: NamedEncoder, system: System, corpus: CorpusRef, found: FoundSets, config: RunSettings
) -> list[System]:
    """Return an encoder's systems after the run's transform; none if the run has no transform.

    On the corpus, one transform is fitted for all sets, and a linear one is also folded into the encoder. On targets,
    one is fitted on each dataset, on all sentences of all its splits, repetitions included; a missing split is logged
    and skipped.
    """
    posthoc, precision = config.transform, config.evaluation.precision
    if posthoc is None:
        return []
    label = candidate.label + config.after_transform
    if config.transform_on == "corpus":
        embeddings = embed(site, candidate.encoder, corpus, candidate.config, precision)
        fitted = fit_transform(site, embeddings, posthoc)
        folded = fold_transform(site, candidate.encoder, candidate.config, fitted) if posthoc.folds else None
        transformed = transform(site, system.embeddings, fitted)
        return [System(label, folded.key if folded else system.checkpoint, transformed, folded=folded)]
    systems = []
    frozen = {name: one for name, one in found.sets.items() if isinstance(kind_of(name), FrozenKind)}
    splits = {name: kind_of(name).whole(name) for name in frozen}  # all splits of the name's dataset

    def dataset_of(name: str) -> tuple[str, ...]:
        return tuple(split.removeprefix(EMBEDDED) for split in splits[name])

    for _, names in groupby(sorted(frozen, key=dataset_of), key=dataset_of):
        whole = dict.fromkeys(split for name in names for split in splits[name])
        # A run's own text is no file or dataset that `available` could find again.
        by_name = frozen if whole.keys() <= frozen.keys() else available(site, whole).sets
        sets = tuple(by_name[name] for name in whole if name in by_name)
        vectors = embed(site, candidate.encoder, sets, candidate.config, precision)
        transformed = transform(site, vectors, fit_on_sets(site, vectors, sets, posthoc))
        covered = frozenset(scored.dataset for scored in sets)
        systems.append(System(label, candidate.checkpoint, transformed, datasets=covered))
    return systems
