"""`bsl assets build|verify|ls`: the models and texts in the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli.terminal.options import Output, Site
from flows.cli.terminal.overrides import settings_in
from flows.cli.terminal.printing import print_json, print_table
from flows.cli.terminal.start import begin

if TYPE_CHECKING:
    from tasks.pretraining.verify import Check


def ls(*, output: Output = Output()) -> None:
    """List the models and texts in the package, with licences and sizes."""
    from storage.assets.catalog import embedded_manifest
    from storage.assets.embedded import embedded_names, embedded_path

    rows = []
    for name in embedded_names():
        embedded_path(name)
        manifest = embedded_manifest(name)
        size = sum(entry.size for entry in manifest.files.values()) / 1e6
        row = {"asset": name, "kind": manifest.kind, "MB": f"{size:.1f}", "licence": manifest.licence}
        rows.append({**row, "description": manifest.description})
    if output.json:
        print_json(rows)
    else:
        print_table("In the package", rows)


def verify(*, output: Output = Output()) -> int:
    """Recompute checksums and figures of the package's models; minutes."""
    from tasks.pretraining.verify import verify as recompute

    checks = recompute()
    if output.json:
        print_json([check.model_dump() | {"holds": check.holds} for check in checks])
    else:
        print_table("Recorded and recomputed figures", [_compared(check) for check in checks])
    return 0 if all(check.holds for check in checks) else 1


def _compared(check: Check) -> dict[str, str]:
    recorded = "none" if check.recorded is None else f"{check.recorded:g}"
    cells = ("ok" if check.holds else "NO", check.asset, check.figure, recorded, f"{check.found:g}")
    return dict(zip(("", "asset", "figure", "recorded", "found"), cells, strict=True))


def build(
    *,
    config: Annotated[Path | None, Parameter(help="JSON file of changed fields of AssetsConfig")] = None,
    root: Annotated[Path | None, Parameter(help="folder to pack into [default: the package's own]")] = None,
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Train all models from a mirror of licensed collections."""
    changes = settings_in(config)
    start = begin(place, output)
    from flows.config import override
    from flows.pretraining import AssetsConfig, assets

    complete = override(AssetsConfig(), changes)
    keys = start.run(assets, is_planned=False, config=complete, root=root)  # the flow also packs files outside stages
    models = {name: f"asset/{key}" for name, key in keys.items()}
    if output.json:
        print_json(models)
    else:
        print("\n".join(f"{name}: {asset}" for name, asset in models.items()))
