"""`bsl compare RUN …`: finished runs side by side, on the same pairs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flows.cli.options import add_site_options, print_table
from flows.cli.starting import be_quiet, failed
from flows.server import start_server, use_server
from flows.site import site_of
from storage.lookup import find_reports

if TYPE_CHECKING:
    import argparse

    from storage.refs import EvaluationRef
    from storage.store import Store


def define_compare(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="report/<key>, a run's id, beginnings of these, or report/latest"
    )
    parser.add_argument("--json", action="store_true", help="for programs: print the outcome, and nothing else")
    add_site_options(parser)
    parser.set_defaults(call=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    site = site_of(vars(arguments))
    runs = [str(ref) for ref in find_reports(site.open_store(), arguments.runs)]  # what is misspelt is said at once
    use_server()
    if not arguments.debug:
        be_quiet()
    embedded = start_server()  # before Prefect is imported, which reads then where its server is
    from flows.comparing import comparing

    if embedded is not None:
        embedded.wait()
    state = comparing(runs, site, return_state=True)
    if not state.is_completed():
        return failed(state.result(raise_on_failure=False))
    _conclude(site.open_store(), state.result(), as_json=arguments.json)
    return 0


def _conclude(store: Store, ref: EvaluationRef, *, as_json: bool) -> None:
    from models.report.page import INTERVALS, difference_rows, score_rows
    from tasks.compare_runs import HTML

    scores = store.scan(ref, "scores").collect()
    differences = store.scan(ref, "comparison").collect() if "comparison" in store.manifest(ref).tables else None
    page = store.fetch(ref) / HTML
    if as_json:
        rows = [] if differences is None else differences.to_dicts()
        print(json.dumps({"evaluation": str(ref), "page": str(page), "differences": rows, "scores": scores.to_dicts()}))
        return
    print_table(INTERVALS, score_rows(scores))
    if differences is not None:
        print_table("Differences × 100 on the same draws", difference_rows(differences))
    print(f"page:    {page}")
