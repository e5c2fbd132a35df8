"""`bsl run RECIPE [--set field=value …]`: run a recipe from raw sentences to its report, with progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bsl.flows.cli.terminal.checks import check_encoders, check_sets
from bsl.flows.cli.terminal.log_lines import spinner
from bsl.flows.cli.terminal.options import NOT_GIVEN, Output, RunSite, Settings
from bsl.flows.cli.terminal.printing import browse_line, encoder_lines, print_result, print_rows
from bsl.flows.cli.terminal.start import begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.progress import StageRun


def run(
    recipe: Annotated[str, Parameter(help="name of a recipe, as in `bsl recipes`")],
    /,
    *,
    settings: Settings = Settings(),
    dry_run: Annotated[bool, Parameter(help="list the stages, cached or to make, without running them")] = False,
    place: RunSite = NOT_GIVEN,
    output: Output = Output(),
) -> int:
    """Run a recipe from raw sentences to its report."""
    from bsl.flows.config import override
    from bsl.flows.recipes import recipe as find_recipe
    from bsl.flows.run_context import run_context_of

    base = find_recipe(recipe)
    changes = settings.changes(base.precisions)
    config = override(base, changes)
    site = run_context_of(place)
    check_encoders([model for model, _ in config.models()], site)
    check_sets(config.evaluation.sets, site)
    start = begin(site, output, serve=not dry_run)
    from bsl.flows.pipeline import pipeline
    from bsl.models.evaluation.verdict import STOPPED
    from bsl.tasks.figures import ReportFigures

    store = site.open_store()
    parameters: dict[str, Any] = {"recipe_name": recipe, "overrides": changes or None}
    if dry_run:
        from bsl.tasks.stage.progress import planning

        with spinner(f"{recipe}: looking for sources and models"), planning() as plan:
            pipeline.fn(**parameters, site=site)
        _dry_run(store, plan, output)
        return 0
    ref = start.run(pipeline, [config], [recipe], **parameters)
    manifest = store.manifest(ref)
    trained = [entry.key for entry in manifest.provenance.inputs.values() if entry.kind == "checkpoint"]
    encoder, *lines = encoder_lines(store, trained[-1]) if trained else (None,)
    found = manifest.figures_as(ReportFigures)
    words = {"verdict": found.verdict, "reason": found.reason, "advice": found.advice}
    print_result(store, ref, output, [*lines, browse_line()], encoder=encoder, **words)
    return 1 if found.verdict == STOPPED else 0


def _dry_run(store: Store, plan: Sequence[StageRun], output: Output) -> None:
    rows = [
        {
            "stage": step.stage,
            "artifact": step.ref.path if output.json else str(step.ref),
            "state": "cached" if not store.defect(step.ref) else "to make",
        }
        for step in plan
    ]
    print_rows(f"{len(plan)} stages, {sum(row['state'] == 'to make' for row in rows)} to make", rows, output)
