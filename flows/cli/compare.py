"""`bsl compare RUN …`: finished runs side by side, on the same pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flows.cli.terminal.options import Output, Site
from flows.cli.terminal.printing import print_figures, print_json, print_line, tables_of
from flows.cli.terminal.start import begin

if TYPE_CHECKING:
    from storage.artifacts.refs import EvaluationRef
    from storage.artifacts.store import Store


def compare(
    runs: Annotated[
        tuple[str, ...],
        Parameter(help="report/<key>, a run's id, the beginning of either, or report/latest", required=True),
    ],
    /,
    *,
    place: Site = Site(),
    output: Output = Output(),
) -> int:
    """Compare finished runs on the same pairs."""
    from flows.run_context import run_context_of
    from storage.artifacts.lookup import find_reports

    store = run_context_of(place.given).open_store()
    names = [str(ref) for ref in find_reports(store, runs)]  # what is misspelt is said at once
    start = begin(place, output)
    from flows.comparison import comparing

    ref = start.run(comparing, [], runs=names)
    if ref is None:
        return 1
    if output.json:
        print_json(_outcome(store, ref))
    else:
        _conclude(store, ref)
    return 0


def _outcome(store: Store, ref: EvaluationRef) -> dict[str, Any]:
    from tasks.reporting.comparison import summary_of
    from tasks.reporting.publish import page_of

    return {
        "evaluation": ref.path,
        "page": page_of(store, ref),
        "said": summary_of(store, ref),
        **tables_of(store, ref),
    }


def _conclude(store: Store, ref: EvaluationRef) -> None:
    from tasks.reporting.comparison import summary_of
    from tasks.reporting.publish import page_of

    print_figures(store, ref)
    for line in summary_of(store, ref):
        print_line(line)
    print(f"page:    {page_of(store, ref)}")
