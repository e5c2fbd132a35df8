"""Finished runs as systems of a comparison: names, results, and the sections on their settings and training."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.storage.artifacts.refs import CheckpointRef, CorpusRef, EmbeddingsRef, ReportRef, ScoresRef
from bsl.storage.errors import ArtifactMissingError
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.figures import ReportFigures
from bsl.tasks.rendering.blocks import Charts, Folded, Part, Table
from bsl.tasks.rendering.paper_tables import tables_of
from bsl.tasks.rendering.score_tables import all_scores
from bsl.tasks.reporting.run.report import report
from bsl.tasks.reporting.sweep.system import SweepSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.corpus.evaluation_sets import EvaluationSet

_LETTERS: Final = 40  # maximum letters of a title in a run's name
_MANY: Final = 15  # maximum number of fields in an open table; a longer one would hide the next sections


def run_systems(store: Store, reports: Sequence[ReportRef]) -> tuple[SweepSystem, ...]:
    """Return the result of each run, its last encoder after the transform if there is one, as a system.

    Raises:
        ArtifactMissingError: an artifact is not the report of a recipe's run, names no vectors of its result, or has a
            transform of each set.
    """
    systems = []
    for name, ref in zip(run_names(store, reports), reports, strict=True):
        manifest = store.manifest(ref)
        inputs, result = manifest.provenance.inputs, _result(manifest)
        settings = settings_of(manifest)
        if settings["transform"] and settings["transform_on"] == "targets":
            # Reports before version 25 name the encoder without the transform as their result.
            raise ArtifactMissingError(
                f"{ref}: its transform was fitted on each set (transform_on=targets), so there is no single system to "
                "compare (expected transform_on=corpus). Run its recipe with --set transform_on=corpus, or read its "
                "differences from the encoder without the transform on its own page."
            )
        if (vectors := inputs.get(f"vectors.{result}")) is None:
            raise ArtifactMissingError(
                f"{ref}: does not name the vectors of its result (reports do since version 10). Run its recipe again; "
                "only the report is made again."
            )
        scores = [ScoresRef(key=entry.key) for argument, entry in inputs.items() if argument.startswith("scores.")]
        own = tuple(one for one in scores if store.manifest(one).provenance.config.get("model") == result)
        systems.append(SweepSystem(label=name, embeddings=(EmbeddingsRef(key=vectors.key),), scores=own))
    return tuple(systems)


def run_parts(store: Store, names: Sequence[str], reports: Sequence[ReportRef], scores: pl.DataFrame) -> list[Part]:
    """Return the sections on runs: corpus and verdict, settings that differ, training curves, all scores."""
    manifests = dict(zip(names, map(store.manifest, reports), strict=True))
    rows = differing({name: settings_of(manifest) for name, manifest in manifests.items()})
    fields = Table.of("Fields by run", rows)
    return [
        Part("Runs", [Table.of("Runs", [_row(store, name, run_manifest) for name, run_manifest in manifests.items()])]),
        Part("Different settings", [Folded(f"{len(rows)} fields", [fields]) if len(rows) > _MANY else fields]),
        Part("Training", _curves(store, manifests)),
        Part("Scores", [*tables_of(scores, tables(), [], ""), all_scores(scores)]),
    ]


def result_scores(store: Store, names: Sequence[str], reports: Sequence[ReportRef]) -> pl.DataFrame:
    """Return the scores of each run's result, under the run's name."""
    return pl.concat(
        store.scan(ref, "scores").filter(model=_result(store.manifest(ref))).collect().with_columns(model=pl.lit(name))
        for name, ref in zip(names, reports, strict=True)
    )


def run_names(store: Store, reports: Sequence[ArtifactRef]) -> list[str]:
    """Return a letter and the shortened title of each run, in their order.

    Raises:
        ArtifactMissingError: an artifact is not the report of a recipe's run.
    """
    origins = {ref: store.manifest(ref).provenance for ref in reports}
    for ref, origin in origins.items():
        if origin.stage != report.name:
            raise ArtifactMissingError(
                f"{ref}: not the report of a recipe's run (made by {origin.stage}), so it has no vectors to compare. "
                f"Score the encoders on the same sets: bsl evaluate {' '.join(map(str, reports))} --suite sts"
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


def without_dev_sets(drawn: Mapping[str, EvaluationSet], runs: Iterable[Mapping[str, Any]]) -> dict[str, EvaluationSet]:
    """Return the sets that selected no encoder of runs with these settings, and that are no dev split."""
    selecting = {dev_of(settings) for settings in runs}
    return {
        name: evaluation_set
        for name, evaluation_set in drawn.items()
        if name.removeprefix("embedded:") not in selecting and getattr(evaluation_set, "split", "") != "dev"
    }


def _result(manifest: Manifest) -> str:
    """Return the name of a run's result among the systems of its report."""
    return manifest.figures_as(ReportFigures).result


def differing(settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a row per field that differs between runs, a column per run; empty and missing fields are dashes."""
    flat = {name: dict(_fields(values, "")) for name, values in settings.items()}
    fields = dict.fromkeys(field for values in flat.values() for field in values)
    rows = [{"field": field, **{name: values.get(field, "–") for name, values in flat.items()}} for field in fields]
    return [row for row in rows if len({value for name, value in row.items() if name != "field"}) > 1]


def _fields(value: Any, path: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _fields(part, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and any(isinstance(part, Mapping | list) for part in value):
        for number, part in enumerate(value):
            yield from _fields(part, f"{path}[{number}]")
    elif value not in (None, []):
        yield path, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _row(store: Store, name: str, manifest: Manifest) -> dict[str, object]:
    corpus, figures = manifest.provenance.inputs["corpus"].key, manifest.figures_as(ReportFigures)
    return {
        "run": name,
        "title": str(manifest.provenance.config["title"]),
        "report": manifest.key[:12],
        "corpus": corpus[:12],
        "sentences": f"{store.manifest(CorpusRef(key=corpus)).rows:,}",
        "verdict": figures.verdict or "not trained",
        "reason": figures.reason or "–",
    }


def _curves(store: Store, manifests: Mapping[str, Manifest]) -> list[Charts]:
    from bsl.tasks.rendering.charts import training_charts  # matplotlib

    logs = {}
    for name, manifest in manifests.items():
        entries = manifest.provenance.inputs
        trained = [entry.key for name, entry in entries.items() if name.startswith("checkpoints.")]
        if trained:
            logs[name] = store.scan(CheckpointRef(key=trained[-1]), "training_log").collect()
    return [Charts(training_charts(logs))] if logs else []
