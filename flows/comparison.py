"""Compare finished runs on one page: differences on the same pairs, settings and curves."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run

from flows.run_context import run_context_of
from models.evaluation.config import BootstrapConfig
from storage.artifacts.lookup import find_reports
from storage.artifacts.refs import EvaluationRef, ReportRef
from tasks.corpus.evaluation_sets import is_scored_set
from tasks.evaluation.comparison import compare
from tasks.evaluation.kinds import available, names_of, tables
from tasks.reporting.comparison import compare_runs, result_vectors, run_names, settings_of
from tasks.stage.log_context import show_logs
from tasks.stage.run_context import RunContext


def _run_name() -> str:
    return " beside ".join(flow_run.parameters["runs"])


@flow(name="bsl-compare", flow_run_name=_run_name)
def comparing(runs: list[str], site: RunContext | None = None) -> EvaluationRef:
    """Compare finished runs on the scored sets that all of them were evaluated on.

    Args:
        runs: Keys of reports or ids of runs, or prefixes of them; each run is compared with the first.
        site: Store and mirror; defaults to the worker's environment.
    """
    show_logs()
    place = run_context_of(site)
    return compared(place, tuple(ReportRef(key=ref.key) for ref in find_reports(place.open_store(), runs)))


def compared(site: RunContext, reports: tuple[ReportRef, ...]) -> EvaluationRef:
    """Return the comparison page of reports; inside a flow run, each line is a task run."""
    store = site.open_store()
    names = run_names(store, reports)
    evaluations = [settings_of(store.manifest(ref))["evaluation"] for ref in reports]
    asked = [names_of(own["sets"]) for own in evaluations]
    shared = [name for name in asked[0] if is_scored_set(name) and all(name in names for names in asked)]
    sets = available(site, shared).drawn if shared else {}
    vectors = [result_vectors(store, ref) for ref in reports] if sets else []
    bootstrap = BootstrapConfig.model_validate(evaluations[0]["bootstrap"])
    differences = tuple(
        compare(site, vectors[0], other, (names[0], name), sets, bootstrap)
        for other, name in zip(vectors[1:], names[1:], strict=False)
    )
    return compare_runs(site, reports, differences, tables())
