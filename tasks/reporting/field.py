"""Methods on one text to one page: proofs, differences, which to use, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from pydantic import BaseModel

from models.evaluation.config import BootstrapConfig
from storage.artifacts.refs import (
    ENCODER,
    CheckpointRef,
    CorpusRef,
    EmbeddingsRef,
    FieldRef,
    PaceRef,
)
from storage.artifacts.schemas import FIELD, FIELD_METHODS
from storage.sources.own_text import TextSource
from tasks.corpus.evaluation_sets import ScoredSet
from tasks.embedding.vectors import open_vectors
from tasks.evaluation.own_text import HeldOutSet, held_out_draws
from tasks.evaluation.sts import StsKind
from tasks.reporting.field_page import TEXT, FieldContent, advice, field_page, summary_rows
from tasks.reporting.publish import publish
from tasks.reporting.sections import Told, reproduce_part, settings_part, text_part
from tasks.stage.cached import StageInputs, Work, stage
from tasks.stage.device import limit_threads
from tasks.training.step_timing import seconds_a_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from models.evaluation.sweep import Ranking, SetDraws
    from storage.artifacts.store import Store
    from tasks.embedding.vectors import Vectors

PAGE: Final = "field"
HTML: Final = f"{PAGE}.html"
_CHECKS_SEED: Final = 200  # checks are drawn apart from questions and labels
_COLLAPSED_RANK, _COLLAPSED_STD = 2.0, 0.01  # as `models.training.config.CollapseConfig`


class Summary(BaseModel):
    """What a terminal prints."""

    rows: list[dict[str, str]]
    """A row a method."""
    said: list[str]
    """Which to use, how sure that is, what it costs."""


class FieldArtifacts(StageInputs):
    """The artifacts of all methods, and of the text."""

    embeddings: dict[str, tuple[EmbeddingsRef, ...]]
    """Method → vectors of all sets' sentences, one a seed."""
    checkpoints: dict[str, tuple[CheckpointRef, ...]]
    """Method → its encoders."""
    paces: dict[str, PaceRef]
    """Method → measured time of a step."""
    corpus: CorpusRef
    """The learnt sentences."""


class FieldComparison(StageInputs):
    """The methods, the questions and the content of the page that no artifact has."""

    title: str
    """Title of the page."""
    methods: dict[str, str]
    """Method → its label; the encoder as it is first."""
    steps: dict[str, int]
    """Method → its training steps."""
    translators: dict[str, tuple[str, ...]]
    """Method → memories of the translators of its views."""
    faults: dict[str, str]
    """Method → why it has no vectors."""
    learnt_views: tuple[str, ...]
    """Questions that are made as a method's views are; shown, but not decisive."""
    text: HeldOutSet
    """The held-out text, and labels."""
    checks: tuple[ScoredSet, ...]
    """Scored pairs on which a method must not lose."""
    may_forget: float
    """Largest drop on the checks."""
    config: BootstrapConfig
    """Settings of the intervals."""
    notes: tuple[str, ...]
    """Notes on the page."""
    sources: tuple[TextSource, ...]
    """The files."""
    settings: str
    """All settings as JSON."""


@stage(ref=FieldRef, version=12)
def compare_field(work: Work, made: FieldArtifacts, asked: FieldComparison, told: Told) -> None:
    """Compare methods on held-out text, labels and checks; a page, two tables.

    Args:
        work: the stage's.
        made: the artifacts of all methods.
        asked: methods, questions and settings.
        told: how to start the same again.

    Raises:
        EvaluationError: vectors cannot be compared.
    """
    from models.evaluation.sweep import SweepResult, forgetful, mean_of, not_chosen

    limit_threads(work.site)
    config, text = asked.config, asked.text
    scored = [name for name in asked.methods if name in made.embeddings]
    names = [asked.methods[name] for name in scored]
    vectors = [[open_vectors(work.store, ref) for ref in made.embeddings[name]] for name in scored]
    proofs = [
        *(_decided(proof, asked.learnt_views) for proof in held_out_draws(text, vectors, config)),
        *_checks(asked.checks, vectors, config),
    ]
    result = SweepResult(tuple(names), (mean_of(proofs, TEXT), *proofs), config.seed)
    table = pl.DataFrame([*result.rows()], schema=FIELD)
    held = {proof.name for proof in proofs if proof.metric == "spearman" and not proof.group}
    forgets = forgetful(table.iter_rows(named=True), held, asked.may_forget)
    barred = not_chosen(table.iter_rows(named=True), TEXT, forgets)
    ranked = result.ranking(TEXT, barred) if len(names) > 1 else None
    costs = _costs(work.store, made, asked, ranked)
    encoders = {asked.methods[name]: refs[0].path for name, refs in made.checkpoints.items()}
    folders = {label: f"{work.store.url}/{path}/{ENCODER}" for label, path in encoders.items()}
    views = {"Round trips of held-out sentences": text.trips} if text.trips else {}
    labelled = text.labels.told if text.labels else ""
    own = [
        text_part(work.store, text.passages, views, asked.sources, labelled),
        settings_part(asked.settings),
        reproduce_part(told),
    ]
    content = FieldContent(asked.title, table, costs, ranked, forgets, folders, asked.notes)
    work.draft.write(table)
    work.draft.write(costs, "field_methods")
    work.draft.note(Summary(rows=summary_rows(content), said=advice(content)).model_dump(mode="json"))
    publish(work, field_page(content, own), PAGE)


def _decided(proof: SetDraws, learnt: Sequence[str]) -> SetDraws:
    """Return a question; one that is made as a method's views are decides nothing."""
    return proof.named(proof.name, "" if proof.name in learnt else proof.group)


def _checks(
    checks: Sequence[ScoredSet], systems: Sequence[Sequence[Vectors]], config: BootstrapConfig
) -> Iterator[SetDraws]:
    """Return the scored pairs on which nothing should be lost; they decide nothing."""
    for number, scored in enumerate(checks):
        drawn = BootstrapConfig(resamples=config.resamples, seed=config.seed + _CHECKS_SEED + number)
        yield from (found.named(found.name, "") for found in StsKind().draws(scored, systems, drawn))


def summary_of(store: Store, ref: FieldRef) -> Summary:
    """What is kept for the terminal."""
    return Summary.model_validate(store.manifest(ref).figures)


def _costs(store: Store, made: FieldArtifacts, asked: FieldComparison, ranked: Ranking | None) -> pl.DataFrame:
    sentences = store.manifest(made.corpus).rows
    behind = {standing.label: standing for standing in ranked.others} if ranked else {}
    rows = []
    for name, label in asked.methods.items():
        standing, refs = behind.get(label), made.checkpoints.get(name, ())
        seconds = sum(_translation_seconds(store, memory) for memory in asked.translators.get(name, ())) * sentences
        rows.append(
            {
                "label": label,
                "method": name,
                "fault": asked.faults.get(name) or _collapse(store, refs),
                "steps": asked.steps.get(name),
                "seconds": _training_seconds(store, refs, asked.steps.get(name, 0), made.paces.get(name)),
                "translation_seconds": seconds if name in asked.translators else None,
                "behind": standing.behind.value if standing else None,
                "behind_low": standing.behind.ci_low if standing else None,
                "behind_high": standing.behind.ci_high if standing else None,
                "behind_p": standing.p_value if standing else None,
                "checkpoint": refs[0].key if refs else None,
            }
        )
    return pl.DataFrame(rows, schema=FIELD_METHODS)


def _training_seconds(store: Store, refs: Sequence[CheckpointRef], steps: int, pace: PaceRef | None) -> float | None:
    """Of one run's steps, at the rate that it had itself, else at the pace that was measured before."""
    if refs:
        manifest = store.manifest(refs[0])
        measured, config = manifest.figures.get("measured"), manifest.provenance.config.get("config")
        if isinstance(measured, dict) and isinstance(config, dict):
            rate, batch = measured["pairs_per_s"], config["batch_size"]
            if isinstance(rate, int | float) and isinstance(batch, int) and rate > 0:
                return steps * batch / rate
    return steps * seconds_a_step(store, pace) if pace else None


def _translation_seconds(store: Store, memory: str) -> float:
    """Seconds that a translator took a sentence, over all that it has translated."""
    parts = [store.manifest(ref) for ref in store.refs(memory)]
    seconds = [part.figures.get("seconds") for part in parts]
    total = sum(value for value in seconds if isinstance(value, int | float))
    return total / max(1, sum(part.rows for part in parts))


def _collapse(store: Store, refs: Sequence[CheckpointRef]) -> str | None:
    """The first evaluation that saw vectors which no longer tell sentences apart."""
    for ref in refs:
        if "training_log" not in store.manifest(ref).tables:
            continue
        log = store.scan(ref, "training_log").filter(pl.col("effective_rank").is_not_null()).collect()
        start = log.row(0, named=True)
        gone = log.filter(
            (pl.col("effective_rank") < min(_COLLAPSED_RANK, start["effective_rank"]))
            | (pl.col("std") < min(_COLLAPSED_STD, start["std"]))
        )
        if gone.height:
            row = gone.row(0, named=True)
            return f"collapsed at step {row['step']}: effective rank {row['effective_rank']:.1f}"
    return None
