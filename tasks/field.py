"""Methods on one text to one page: proofs, differences, which to use, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from pydantic import BaseModel

from models.evaluation.bootstrap import BootstrapConfig
from models.report.field import FieldContent, advice, field_page, summary_rows
from storage.checkpoint import ENCODER
from storage.labels import LabelSource
from storage.refs import CheckpointRef, CorpusRef, EmbeddingsRef, FieldRef, PaceRef, PassagesRef, ViewsRef
from storage.schemas import FIELD, FIELD_METHODS
from storage.texts import TextSource
from tasks.evaluation.sets import ScoredSet
from tasks.evaluation.vectors import open_vectors
from tasks.field_proofs import checks_of, label_proofs, text_proofs
from tasks.field_text import own_probes
from tasks.own_text import own_text
from tasks.pace import seconds_a_step
from tasks.report_content import Told
from tasks.stage.cached import Work, stage
from tasks.stage.machine import settle_threads
from tasks.stage.show import show_image, show_markdown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from models.evaluation.field import Proof, Ranking
    from storage.store import Store

PAGE: Final = "field.md"
PLOT: Final = "field.png"
HTML: Final = "field.html"
_COLLAPSED_RANK, _COLLAPSED_STD = 2.0, 0.01  # as `models.training.config.CollapseConfig`


class Summary(BaseModel):
    """What a terminal prints."""

    rows: list[dict[str, str]]
    """A row a method."""
    said: list[str]
    """Which to use, how sure that is, what it costs."""


@stage(ref=FieldRef, version=10)
def compare_field(
    work: Work,
    title: str,
    methods: dict[str, str],
    asked: dict[str, tuple[EmbeddingsRef, ...]],
    checked: dict[str, tuple[EmbeddingsRef, ...]],
    checkpoints: dict[str, tuple[CheckpointRef, ...]],
    steps: dict[str, int],
    paces: dict[str, PaceRef],
    translators: dict[str, tuple[str, ...]],
    faults: dict[str, str],
    learnt_views: tuple[str, ...],
    passages: PassagesRef,
    corpus: CorpusRef,
    trips: ViewsRef | None,
    labels: LabelSource | None,
    checks: tuple[ScoredSet, ...],
    questions: int,
    may_forget: float,
    config: BootstrapConfig,
    notes: tuple[str, ...],
    sources: tuple[TextSource, ...],
    settings: str,
    told: Told,
) -> None:
    """Compare methods on held-out text, labels and checks; pages, a plot, two tables.

    Args:
        work: the stage's.
        title: of the page.
        methods: name → label of each method, the encoder as it is first.
        asked: name → vectors, a seed each, of what the proofs ask; of methods that have some.
        checked: name → vectors of the checks' sentences.
        checkpoints: name → its encoders.
        steps: name → steps that it took.
        paces: name → what a step takes, where it was measured.
        translators: name → memories of the translators that its views came through.
        faults: name → why a method has no vectors.
        learnt_views: questions that are made as some method's views are: they are shown and decide nothing.
        passages: the text, with its held-out parts.
        corpus: what was learnt.
        trips: round trips of held-out sentences.
        labels: labels, if there are any.
        checks: scored pairs on which a method must not lose.
        questions: most questions of a probe.
        may_forget: by how much its figure there may fall.
        config: how differences are drawn.
        notes: what the page says of the run.
        sources: the files.
        settings: all settings as JSON.
        told: how to start the same again.

    Raises:
        EvaluationError: vectors cannot be compared.
    """
    from models.evaluation.field import field_rows, forgetful, not_chosen
    from models.report.field_plot import field_plot  # matplotlib, which a cached run never needs

    settle_threads(work.site)
    scored = [name for name in methods if name in asked]
    names = [methods[name] for name in scored]
    vectors = [[open_vectors(work.store, ref) for ref in asked[name]] for name in scored]
    found = own_probes(work.store, passages, trips, questions)
    proofs = [
        *text_proofs(found, vectors, learnt_views, config),
        *label_proofs(work.store, passages, labels, vectors, config),
        *checks_of(work.store, [checked[name] for name in scored], checks, config),
    ]
    table = pl.DataFrame(
        [row | {"protocol": "all"} for row in field_rows(names, proofs, seed=config.seed)], schema=FIELD
    )
    held = {proof.name for proof in proofs if proof.metric == "spearman" and not proof.group}
    forgets = forgetful(table.iter_rows(named=True), held, may_forget)
    ranked = _ranked(names, proofs, not_chosen(table.iter_rows(named=True), forgets), config.seed)
    costs = _costs(work.store, methods, checkpoints, steps, paces, translators, faults, corpus, ranked)
    folders = {methods[name]: f"{work.store.url}/{refs[0].path}/{ENCODER}" for name, refs in checkpoints.items()}
    views = {"Round trips of held-out sentences": trips} if trips else {}
    own = own_text(work.store, passages, views, sources, labels.told if labels else "", settings, told)
    content = FieldContent(title, table, costs, ranked, forgets, folders, notes, PLOT, own)
    work.draft.write(table)
    work.draft.write(costs, "field_methods")
    _publish(work, content, field_plot(table, title))


def _publish(work: Work, content: FieldContent, picture: bytes) -> None:
    from models.report.field_html import field_html  # matplotlib

    page = field_page(content)
    (work.draft.folder / HTML).write_text(field_html(content), encoding="utf-8")
    (work.draft.folder / PAGE).write_text(page, encoding="utf-8")
    (work.draft.folder / PLOT).write_bytes(picture)
    work.draft.note(Summary(rows=summary_rows(content), said=advice(content)).model_dump(mode="json"))
    show_markdown("field", page.replace(f"![plot]({PLOT})", "(see field-plot)"), content.title)
    show_image("field-plot", picture, content.title)


def summary_of(store: Store, ref: FieldRef) -> Summary:
    """What is kept for the terminal."""
    return Summary.model_validate(store.manifest(ref).figures)


def _ranked(names: list[str], proofs: Sequence[Proof], barred: Collection[str], seed: int) -> Ranking | None:
    from models.evaluation.field import decisive, ranking

    return ranking(names, decisive(proofs), barred, seed=seed) if len(names) > 1 else None


def _costs(
    store: Store,
    methods: Mapping[str, str],
    checkpoints: Mapping[str, tuple[CheckpointRef, ...]],
    steps: Mapping[str, int],
    paces: Mapping[str, PaceRef],
    translators: Mapping[str, tuple[str, ...]],
    faults: Mapping[str, str],
    corpus: CorpusRef,
    ranked: Ranking | None,
) -> pl.DataFrame:
    sentences = store.manifest(corpus).rows
    behind = {standing.label: standing for standing in ranked.others} if ranked else {}
    rows = []
    for name, label in methods.items():
        standing, refs = behind.get(label), checkpoints.get(name, ())
        seconds = sum(_translation_seconds(store, memory) for memory in translators.get(name, ())) * sentences
        rows.append(
            {
                "label": label,
                "method": name,
                "fault": faults.get(name) or _collapse(store, refs),
                "steps": steps.get(name),
                "seconds": _training_seconds(store, refs, steps.get(name, 0), paces.get(name)),
                "translation_seconds": seconds if name in translators else None,
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
