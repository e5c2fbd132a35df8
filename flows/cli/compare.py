"""`bsl compare RUN …`: compare finished runs on the same pairs."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from bsl.flows.cli.terminal.options import NOT_GIVEN, Output, Site
from bsl.flows.cli.terminal.printing import print_result
from bsl.flows.cli.terminal.start import begin


def compare(
    runs: Annotated[
        tuple[str, ...],
        Parameter(help="report/<key>, the id of a run, a prefix of these, or report/latest", required=True),
    ],
    /,
    *,
    place: Site = NOT_GIVEN,
    output: Output = Output(),
) -> None:
    """Compare finished runs on the same pairs."""
    from bsl.flows.run_context import run_context_of
    from bsl.storage.artifacts.lookup import find_reports

    site = run_context_of(place)
    store = site.open_store()
    reports = find_reports(store, runs)
    start = begin(site, output)
    from bsl.flows.comparison import comparing
    from bsl.storage.artifacts.refs import ReportRef
    from bsl.tasks.reporting.sweep.runs import run_systems

    run_systems(store, [ReportRef(key=ref.key) for ref in reports])  # raises before the server starts
    ref = start.run(comparing, [], runs=[str(ref) for ref in reports])
    print_result(store, ref, output)
