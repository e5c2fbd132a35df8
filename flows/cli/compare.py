"""`bsl compare RUN …`: finished runs side by side, on the same pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flows.cli.terminal.options import add_json, add_site_options, print_figures, print_json, print_line, tables_of
from flows.cli.terminal.start import begin
from flows.run_context import run_context_of
from storage.artifacts.lookup import find_reports

if TYPE_CHECKING:
    import argparse

    from storage.artifacts.refs import EvaluationRef
    from storage.artifacts.store import Store


def define_compare(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="report/<key>, a run's id, beginnings of these, or report/latest"
    )
    add_json(parser)
    add_site_options(parser)
    parser.set_defaults(call=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    store = run_context_of(vars(arguments)).open_store()
    runs = [str(ref) for ref in find_reports(store, arguments.runs)]  # what is misspelt is said at once
    start = begin(arguments)
    from flows.comparison import comparing

    ref = start.run(comparing, [], runs=runs)
    if ref is None:
        return 1
    if arguments.json:
        print_json(_outcome(store, ref))
    else:
        _conclude(store, ref)
    return 0


def _outcome(store: Store, ref: EvaluationRef) -> dict[str, Any]:
    from tasks.reporting.comparison import said_of
    from tasks.reporting.publish import page_of

    return {
        "evaluation": ref.path,
        "page": page_of(store, ref),
        "said": said_of(store, ref),
        **tables_of(store, ref),
    }


def _conclude(store: Store, ref: EvaluationRef) -> None:
    from tasks.reporting.comparison import said_of
    from tasks.reporting.publish import page_of

    print_figures(store, ref)
    for line in said_of(store, ref):
        print_line(line)
    print(f"page:    {page_of(store, ref)}")
