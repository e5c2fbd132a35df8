"""`bsl run RECIPE [--set field=value …]`: from raw sentences to the report, watched."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from flows.cli.terminal.log_lines import be_quiet, spinner
from flows.cli.terminal.options import (
    BROWSE,
    add_json,
    add_settings,
    add_site_options,
    print_json,
    print_line,
    print_table,
)
from flows.cli.terminal.overrides import changes_of
from flows.cli.terminal.start import failed, wait_for
from flows.prefect_server.server import TAG, start_server, use_server
from models.evaluation.verdict import STOPPED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from storage.artifacts.refs import ReportRef
    from storage.artifacts.store import Store
    from tasks.stage.progress import StageRun


def define_run(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("recipe", metavar="RECIPE", help="see `bsl recipes`")
    add_settings(parser, "such as training.lr=3e-4")
    add_site_options(parser)
    parser.add_argument("--processes", type=int, help="processes that train one model, one a GPU (BSL_PROCESSES; 1)")
    parser.add_argument("--dry-run", action="store_true", help="list the stages, cached or to be made, and run none")
    add_json(parser)
    parser.set_defaults(call=_run)


def _run(arguments: argparse.Namespace) -> int:
    use_server()
    if not arguments.debug:
        be_quiet()
    # Before all else, since it takes longest to start; if something is misspelt, it is ended amid its imports.
    embedded = None if arguments.dry_run else start_server()
    from flows.config import override
    from flows.recipes import recipe

    changes = changes_of(arguments.set)
    config = override(recipe(arguments.recipe), changes)
    from flows.run_context import run_context_of

    site = run_context_of(vars(arguments))
    with spinner(f"{arguments.recipe}: looking for its sources and models, starting Prefect"):
        from flows.cli.terminal.progress import watching
        from flows.pipeline import pipeline, run
        from tasks.stage.progress import planning

        # What is missing is said here, before a run starts only to end by it.
        with planning() as plan:
            run(config, site)
        store = site.open_store()
        if not arguments.dry_run:
            _import_ahead(store, plan)
            wait_for(embedded)
    if arguments.dry_run:
        return _dry_run(store, plan, as_json=arguments.json)
    from prefect import tags

    from flows.prefect_server.crashed_runs import cancelled_when_stopped

    flow = cancelled_when_stopped(pipeline)
    with nullcontext() if arguments.json else watching(store, plan), tags(TAG, arguments.recipe):
        state: Any = flow(arguments.recipe, changes or None, site, return_state=True)
    if not state.is_completed():
        return failed(state.result(raise_on_failure=False))
    ref = state.result()
    if arguments.json:
        print_json(_outcome(store, ref))
    else:
        _conclude(store, ref, config.title)
    return 1 if store.manifest(ref).figures.get("verdict") == STOPPED else 0


def _import_ahead(store: Store, plan: Sequence[StageRun]) -> None:
    """What a stage that must be made imports in its body, while the server starts, which takes as long."""
    if any(step.stage == "train" and store.defect(step.ref) for step in plan):
        import models.training.loop  # noqa: F401


def _dry_run(store: Store, plan: Sequence[StageRun], *, as_json: bool) -> int:
    rows = [
        {
            "stage": step.stage,
            "artifact": step.ref.path if as_json else str(step.ref),
            "state": "cached" if not store.defect(step.ref) else "to make",
        }
        for step in plan
    ]
    if as_json:
        print_json(rows)
        return 0
    print_table(f"{len(plan)} stages, {sum(row['state'] == 'to make' for row in rows)} to be made", rows)
    return 0


def _outcome(store: Store, ref: ReportRef) -> dict[str, Any]:
    from tasks.reporting.publish import page_of

    manifest = store.manifest(ref)
    return {
        "report": ref.path,
        "page": str(page_of(store, ref)),
        "encoder": _encoder(store, ref),
        **{name: manifest.figures.get(name) for name in ("verdict", "reason", "advice")},
        "scores": store.scan(ref, "scores").collect().to_dicts(),
    }


def _encoder(store: Store, ref: ReportRef) -> str | None:
    inputs = store.manifest(ref).provenance.inputs.values()
    trained = [entry.key for entry in inputs if entry.kind == "checkpoint"]
    return f"{store.url}/checkpoint/{trained[-1]}/encoder" if trained else None


def _conclude(store: Store, ref: ReportRef, title: str) -> None:
    from tasks.rendering.score_tables import INTERVALS, score_rows
    from tasks.reporting.publish import page_of

    print_table(f"{title}\n{INTERVALS}", score_rows(store.scan(ref, "scores").collect()))
    figures = store.manifest(ref).figures
    if verdict := figures.get("verdict"):
        print_line(f"{verdict}: {figures['reason']}. {figures['advice']}")
    print(f"report:  {page_of(store, ref)}")
    if encoder := _encoder(store, ref):
        print(f"encoder: {encoder}\n         (opens with SentenceTransformer)")
    print(BROWSE)
