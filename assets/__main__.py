"""Rebuild the embedded models of the package, or recompute their figures: `python -m assets build|verify`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from bsl.flows.cli.terminal.log_lines import printable, start_lines
from bsl.flows.cli.terminal.options import NOT_GIVEN, Output, Site
from bsl.flows.cli.terminal.overrides import settings_in
from bsl.flows.cli.terminal.printing import print_json, print_table
from bsl.flows.cli.terminal.start import begin
from bsl.flows.run_context import run_context_of
from bsl.models.errors import ModelError
from bsl.storage.errors import StorageError
from bsl.tasks.diagnostics.finding import exit_code

app = App(
    name="python -m assets",
    help=__doc__,
    help_format="plaintext",
    default_parameter=Parameter(negative=(), show_default=False),
    result_action="return_value",
)


@app.command
def verify(*, output: Output = Output()) -> int:
    """Recompute checksums and figures of the package's models; minutes."""
    from assets.verify import verify as recompute

    checks = recompute()
    if output.json:
        print_json([check.model_dump() | {"holds": check.holds} for check in checks])
    else:
        print_table("Recomputed and recorded figures", [check.finding.cells for check in checks])
    return exit_code(check.finding for check in checks)


@app.command
def build(
    *,
    config: Annotated[Path | None, Parameter(help="JSON file of changed fields of AssetsConfig (flow.py)")] = None,
    root: Annotated[Path | None, Parameter(help="folder to pack into [default: the package's own]")] = None,
    place: Site = NOT_GIVEN,
    output: Output = Output(),
) -> None:
    """Train all models from a mirror of licensed collections."""
    changes = settings_in(config)
    start = begin(run_context_of(place), output)
    from assets.flow import AssetsConfig, assets
    from bsl.flows.config import override

    complete = override(AssetsConfig(), changes)
    keys = start.run(assets, is_planned=False, config=complete, root=root)  # the flow also packs files outside stages
    models = {name: f"asset/{key}" for name, key in keys.items()}
    if output.json:
        print_json(models)
    else:
        print("\n".join(f"{name}: {asset}" for name, asset in models.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 1 if a figure differs or a source, file or setting is faulty."""
    start_lines()
    try:
        return app(argv) or 0
    except (StorageError, ModelError, OSError, ValueError) as error:
        print(f"assets: {printable(str(error))}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
