"""Raw sentences in, an evaluated encoder out: one line an artifact, in the order in which the data flows."""

from prefect import flow
from prefect.runtime import flow_run

from flows.config import Overrides, PipelineConfig, override
from flows.recipes import RecipeName, recipe
from flows.scoring import differences, frozen_scores
from flows.site import site_of
from storage.refs import ReportRef
from tasks.augment import augment
from tasks.embed import embed
from tasks.evaluation.candidates import Candidate
from tasks.evaluation.kinds import available_frozen, scored_of
from tasks.evaluation.sets import resolve_scored_set
from tasks.evaluation.sts import score_tfidf
from tasks.evaluation.summary import Missing
from tasks.ingest import ingest, locate_sources
from tasks.nli import nli
from tasks.pair import pair, pair_labelled
from tasks.pretrained import resolve_encoder
from tasks.report import report
from tasks.site import Site
from tasks.stage.logs import show_logs
from tasks.train import train


def _run_name() -> str:
    return f"{flow_run.parameters['recipe_name']}-{str(flow_run.id)[:8]}"


@flow(name="bsl-pipeline", flow_run_name=_run_name)
def pipeline(recipe_name: RecipeName, overrides: Overrides | None = None, site: Site | None = None) -> ReportRef:
    """Bootstrapped sentence representation learning, from raw sentences to the report.

    Args:
        recipe_name: The published row or use to run; `bsl recipes` describes them.
        overrides: Fields of the recipe to change, such as `{"training": {"lr": 0.0003}}`.
        site: Store, mirror and device; by BSL_STORE, BSL_DATA_MIRROR and BSL_DEVICE of the worker if absent.
    """
    show_logs()
    return run(
        override(recipe(recipe_name), overrides or {}),
        site_of(site),
    )


def run(config: PipelineConfig, site: Site) -> ReportRef:
    """The way through the house; inside a flow run, each line is a task run."""
    start, encoder = resolve_encoder(site, config.encoder)
    sets, missing = available_frozen(site, config.evaluation.sets)
    dev = resolve_scored_set(site, config.evaluation.dev) if config.evaluation.dev else None

    sources = locate_sources(site, config.ingest)
    corpus = ingest(site, sources, config.ingest)
    labelled = nli(site, sources, corpus, config.ingest) if config.needs_labels else None
    views = augment(site, corpus, config.augment, labelled)
    if labelled and config.pairs.labelled:
        pairs = pair_labelled(site, corpus, labelled, config.pairs)
    else:
        pairs = pair(site, views, config.pairs)
    teacher = None
    if config.teacher:
        teacher_model, teacher_config = resolve_encoder(site, config.teacher)
        teacher = embed(site, teacher_model, corpus, teacher_config, config.evaluation.precision)
    checkpoint = train(site, pairs, start, dev, encoder, config.training, teacher)

    how, title = config.evaluation, config.training.objective.title
    before = Candidate(label=f"before {title} ({encoder.pooling})", encoder=start, config=encoder)
    after = Candidate(label=f"after {title}", encoder=checkpoint, config=encoder)
    embeddings = [embed(site, one.encoder, sets, encoder, how.precision) for one in (before, after)]
    scores = [
        *([score_tfidf(site, corpus, scored, how.bootstrap)] if (scored := scored_of(sets)) else []),
        *frozen_scores(site, embeddings[0], before, sets, how),
        *frozen_scores(site, embeddings[1], after, sets, how),
    ]
    gains = differences(site, [before, after], embeddings, sets, how.bootstrap)
    skipped = Missing(names=tuple(missing), reasons=missing)
    return report(
        site,
        config.title,
        tuple(scores),
        gains,
        skipped,
        checkpoint,
        pairs,
        views,
        corpus,
        config.published,
        config.settings,
        config.ingest.sources,
    )
