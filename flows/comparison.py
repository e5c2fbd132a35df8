"""Compare finished runs on one page: differences on the same pairs, settings and curves."""

from __future__ import annotations

from prefect.runtime import flow_run

from bsl.flows.checked_flow import flow
from bsl.flows.run_context import command_of, run_context_of
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.storage.artifacts.lookup import find_reports
from bsl.storage.artifacts.refs import ArtifactRef, ReportRef
from bsl.storage.filesystem.urls import Public
from bsl.tasks.evaluation.kinds import available, kind_of, names_of, shared_names, undrawn
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.reporting.sweep.compare import compare_systems
from bsl.tasks.reporting.sweep.inputs import SweepSettings
from bsl.tasks.reporting.sweep.runs import dev_of, run_systems, settings_of, without_dev_sets
from bsl.tasks.stage.log_context import show_logs
from bsl.tasks.stage.run_context import RunContext

_NO_SET = "The runs share no set of pairs or questions, so there are no paired differences."


def _run_name() -> str:
    return " and ".join(flow_run.parameters["runs"])


@flow(name="bsl-compare", flow_run_name=_run_name)
def comparing(runs: list[Public], site: RunContext | None = None) -> ArtifactRef:
    """Compare finished runs on the sets with bootstrap draws that all of them were evaluated on.

    Args:
        runs: Keys of reports or ids of runs, or prefixes of them; each run is compared with the first.
        site: Store and mirror; defaults to the worker's environment.
    """
    show_logs()
    context = run_context_of(site)
    reports = tuple(ReportRef(key=ref.key) for ref in find_reports(context.open_store(), runs))
    return compared(context, reports, command_of("compare", runs, {}))


def compared(site: RunContext, reports: tuple[ReportRef, ...], command: str = "") -> ArtifactRef:
    """Return the comparison page of reports; inside a flow run, each line is a task run.

    Raises:
        ArtifactMissingError: As for `run_systems`.
        EvaluationError: The runs have no figure in common.
    """
    store = site.open_store()
    systems = run_systems(store, reports)
    settings = [settings_of(store.manifest(ref)) for ref in reports]
    sets = [names_of(run_settings["evaluation"]["sets"]) for run_settings in settings]
    names = [name for name in shared_names(sets) if kind_of(name).is_drawn]
    others = undrawn(sets)
    if not names and not others:
        scored = "; ".join(
            f"{system.label} on {', '.join(run_settings)}" for system, run_settings in zip(systems, sets, strict=True)
        )
        raise EvaluationError(
            f"the runs share no set that all of them were scored on ({scored}). Score their encoders on the same sets: "
            f"bsl evaluate {' '.join(str(ref) for ref in reports)} --suite sts"
        )
    found = available(site, names).drawn if names else {}
    # Dev splits, and a set that selected one of the encoders, count only if there is no other set.
    fair = without_dev_sets(found, settings)
    dev_sets = {dev_of(run_settings) for run_settings in settings}
    selected = [name.replace("/", " ") for name in found if name in dev_sets]
    optimistic = f"{', '.join(selected)} selected an encoder's checkpoint, so differences on it are optimistic."
    shown = SweepSettings(
        title=f"{len(reports)} runs compared",
        config=BootstrapConfig.model_validate(settings[0]["evaluation"]["bootstrap"]),
        sets=fair | found,
        aside=tuple(name.replace("/", " ") for name in found if name not in fair) if fair else (),
        others=others,
        runs=reports,
        notes=(*([] if found else [_NO_SET]), *([optimistic] if selected else [])),
    )
    return compare_systems(site, systems, shown, RunCommand(command=command))
