"""Compare finished runs: the figures, settings and training logs of their reports on one page."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from models.evaluation.signature import signed
from models.evaluation.verdict import telling_row
from storage.artifacts.refs import CheckpointRef, ComparisonRef, CorpusRef, EmbeddingsRef, EvaluationRef, ReportRef
from storage.errors import ArtifactMissingError
from tasks.rendering.blocks import Charts, Folded, Page, Part, Table
from tasks.rendering.paper_tables import PaperTable, tables_of
from tasks.rendering.score_tables import all_scores
from tasks.reporting.evaluation import difference_part, write_figures
from tasks.reporting.publish import publish
from tasks.reporting.run.report import report
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Set

    from storage.artifacts.manifest import Manifest
    from storage.artifacts.store import Store

PAGE: Final = "comparison"
_LETTERS: Final = 40  # maximum letters of a title in a run's name
_MANY: Final = 15  # maximum number of fields in an open table; a longer one would hide the next sections


@stage(ref=EvaluationRef, version=5)
def compare_runs(
    work: StageContext,
    reports: tuple[ReportRef, ...],
    comparisons: tuple[ComparisonRef, ...],
    tables: tuple[PaperTable, ...],
) -> None:
    """Publish the page of several runs, the scores of their results in one table, and their differences."""
    from tasks.rendering.charts import system_chart  # matplotlib

    names = run_names(work.store, reports)
    manifests = dict(zip(names, map(work.store.manifest, reports), strict=True))
    settings = {name: settings_of(manifest) for name, manifest in manifests.items()}
    scores = pl.concat(_scores(work.store, name, manifest) for name, manifest in manifests.items())
    comparison = write_figures(work, scores, comparisons)
    sentences = findings(comparison, {name: dev_of(own) for name, own in settings.items()})
    work.draft.note({"said": [*sentences]})
    parts = [
        Part("Runs", [Table.of("Runs", [_row(work.store, name, own) for name, own in manifests.items()])]),
        difference_part(comparison),
        Part("Different settings", [_setting_table(differing(settings))]),
        Part("Training", _curves(work.store, manifests)),
        Part("Scores", [*tables_of(scores, tables, [], ""), all_scores(scores)]),
    ]
    publish(work, Page.of_result(f"{len(names)} runs compared", sentences, system_chart(scores), parts), PAGE)


def findings(comparison: pl.DataFrame | None, devs: Mapping[str, str]) -> list[str]:
    """Return a sentence per run after the first: better, worse or not different, on the deciding set (`telling_row`).

    A set that selected one of the two encoders is used only if there is no other; the sentence then says so.

    Args:
        comparison: the table `comparison`; None without scored pairs.
        devs: run → the dataset and split that selected its encoder; empty or absent without one.
    """
    if comparison is None:
        return ["The runs share no set of scored pairs, so nothing is drawn on the same pairs."]
    both = comparison.select("reference", "model").unique(maintain_order=True).rows()
    return [_finding(comparison, systems, {devs.get(name, "") for name in systems}) for systems in both]


def _finding(comparison: pl.DataFrame, systems: tuple[str, ...], chose: Set[str]) -> str:
    """Return the sentence that compares a run with its reference."""
    fair = telling_row(comparison, systems, chose)
    row = fair or telling_row(comparison, systems)
    assert row is not None  # every comparison contains Spearman
    low, high = row["ci_low"], row["ci_high"]
    word = "better than" if low > 0 else "worse than" if high < 0 else "not told apart from"
    place = f"{row['dataset']} {row['split']}{'' if fair else ', which chose the encoder'}, p {row['p_value']:.3f}"
    return f"{row['model']} is {word} {row['reference']}: Spearman × 100 {signed(row['value'], low, high)} on {place}."


def run_names(store: Store, reports: tuple[ReportRef, ...]) -> list[str]:
    """Return a letter and the shortened title of each run, in their order.

    Raises:
        ArtifactMissingError: an artifact is not the report of a recipe's run.
    """
    origins = {ref: store.manifest(ref).provenance for ref in reports}
    for ref, origin in origins.items():
        if origin.stage != report.name:
            raise ArtifactMissingError(
                f"{ref} was made by {origin.stage or 'an older version'}; expected what `bsl run` ends with, so name "
                "such reports alone"
            )
    titles = [str(origin.config["title"]) for origin in origins.values()]
    return [
        f"{letter} ({title.partition(':')[0][:_LETTERS]})"
        for letter, title in zip(string.ascii_uppercase, titles, strict=False)
    ]


def settings_of(manifest: Manifest) -> dict[str, Any]:
    """Return the settings of a report's run as in the report's key, with the names of its sources."""
    config = manifest.provenance.config
    settings = config["settings"]
    if not isinstance(settings, dict):
        return {}
    # Keys contain only the content of a setting's sources; their names are a separate field of the report's key.
    ingest = settings.get("ingest")
    return {**settings, "ingest": {"sources": config.get("sources"), **(ingest if isinstance(ingest, dict) else {})}}


def dev_of(settings: Mapping[str, Any]) -> str:
    """Return the set that selected a run's encoder, as named in comparisons; empty without one."""
    trainings = [phase["training"] for phase in (*settings.get("earlier", ()), settings) if phase.get("training")]
    chose = any(training.get("select") != "last" for training in trainings)
    return (settings["evaluation"].get("dev") or "").removeprefix("embedded:") if chose else ""


def result_vectors(store: Store, report: ReportRef) -> EmbeddingsRef:
    """Return the vectors of a run's result: its last encoder, after the transform if there is one.

    Raises:
        ArtifactMissingError: the report names no vectors, as it is of an older version or each set has its own.
    """
    manifest = store.manifest(report)
    entry = manifest.provenance.inputs.get(f"vectors.{manifest.figures.get('result')}")
    if entry is None:
        raise ArtifactMissingError(
            f"{report} names no vectors of its result, as reports do since version 10; run its recipe again, which "
            "makes the report alone"
        )
    return EmbeddingsRef(key=entry.key)


def differing(settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a row per field that differs between runs, a column per run; empty and missing fields are dashes."""
    flat = {name: dict(_fields(own, "")) for name, own in settings.items()}
    fields = dict.fromkeys(field for own in flat.values() for field in own)
    rows = [{"field": field, **{name: own.get(field, "–") for name, own in flat.items()}} for field in fields]
    return [row for row in rows if len({value for name, value in row.items() if name != "field"}) > 1]


def _fields(value: Any, place: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _fields(part, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list) and any(isinstance(part, Mapping | list) for part in value):
        for number, part in enumerate(value):
            yield from _fields(part, f"{place}[{number}]")
    elif value not in (None, []):
        yield place, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _row(store: Store, name: str, manifest: Manifest) -> dict[str, object]:
    corpus = manifest.provenance.inputs["corpus"].key
    return {
        "run": name,
        "title": str(manifest.provenance.config["title"]),
        "report": manifest.key[:12],
        "corpus": corpus[:12],
        "sentences": f"{store.manifest(CorpusRef(key=corpus)).rows:,}",
        "verdict": str(manifest.figures.get("verdict", "not trained")),
        "reason": str(manifest.figures.get("reason", "–")),
    }


def _scores(store: Store, name: str, manifest: Manifest) -> pl.DataFrame:
    """Return the figures of a run's result, under the run's name."""
    table = store.scan(manifest.ref, "scores").collect()
    return table.filter(model=str(manifest.figures["result"])).with_columns(model=pl.lit(name))


def _setting_table(rows: list[dict[str, str]]) -> Table | Folded:
    """Return the table of differing fields; folded if long, for example if only one run has translators."""
    table = Table.of("Fields by run", rows)
    return Folded(f"{len(rows)} fields", [table]) if len(rows) > _MANY else table


def _curves(store: Store, manifests: Mapping[str, Manifest]) -> list[Charts]:
    from tasks.rendering.charts import training_charts  # matplotlib

    logs = {}
    for name, manifest in manifests.items():
        entries = manifest.provenance.inputs
        trained = [entry.key for place, entry in entries.items() if place.startswith("checkpoints.")]
        if trained:
            logs[name] = store.scan(CheckpointRef(key=trained[-1]), "training_log").collect()
    return [Charts(training_charts(logs))] if logs else []
