"""`bsl assets build|verify|ls`: the models and texts that travel in the package."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.main import add_debug
from flows.cli.terminal.options import add_json, add_site_options, print_json, print_table
from flows.cli.terminal.start import begin, failed, wait_for
from flows.prefect_server.server import TAG

if TYPE_CHECKING:
    from tasks.pretraining.verify import Check


def define_assets(parser: argparse.ArgumentParser) -> None:
    """The verb with its three forms."""
    forms = parser.add_subparsers(dest="form", required=True, metavar="{ls,verify,build}")
    listing = forms.add_parser("ls", help="what there is, with licences and sizes")
    listing.set_defaults(call=_list)
    verifying = forms.add_parser("verify", help="recompute checksums and figures (minutes)")
    verifying.set_defaults(call=_verify)
    build = forms.add_parser("build", help="train all models from a mirror of licensed collections")
    build.add_argument("--config", type=Path, help="JSON file with fields of AssetsConfig to change")
    build.add_argument("--root", type=Path, help="folder to pack into; the package's own unless given")
    add_site_options(build)
    for form in (listing, verifying, build):
        add_json(form)
        add_debug(form, default=argparse.SUPPRESS)
    build.set_defaults(call=_build)


def _list(arguments: argparse.Namespace) -> int:
    from storage.assets.catalog import embedded_manifest, embedded_names, embedded_path

    rows = []
    for name in embedded_names():
        embedded_path(name)
        manifest = embedded_manifest(name)
        size = sum(entry.size for entry in manifest.files.values()) / 1e6
        row = {"asset": name, "kind": manifest.kind, "MB": f"{size:.1f}", "licence": manifest.licence}
        rows.append({**row, "description": manifest.description})
    if arguments.json:
        print_json(rows)
    else:
        print_table("In the package", rows)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from tasks.pretraining.verify import verify

    checks = verify()
    if arguments.json:
        print_json([check.model_dump() | {"holds": check.holds} for check in checks])
    else:
        print_table("Recorded and found", [_compared(check) for check in checks])
    return 0 if all(check.holds for check in checks) else 1


def _compared(check: Check) -> dict[str, str]:
    recorded = "none" if check.recorded is None else f"{check.recorded:g}"
    cells = ("ok" if check.holds else "NO", check.asset, check.figure, recorded, f"{check.found:g}")
    return dict(zip(("", "asset", "figure", "recorded", "found"), cells, strict=True))


def _build(arguments: argparse.Namespace) -> int:
    start = begin(arguments)
    from prefect import tags

    from flows.cli.terminal.progress import watching
    from flows.config import override
    from flows.prefect_server.crashed_runs import cancelled_when_stopped
    from flows.pretraining import AssetsConfig, assets

    config = override(AssetsConfig(), json.loads(arguments.config.read_bytes()) if arguments.config else {})
    wait_for(start.embedded)
    # Not planned, as other flows are: it packs what it made into the package.
    with watching(start.site.open_store(), None) if start.watched else nullcontext(), tags(TAG):
        state: Any = cancelled_when_stopped(assets)(config, start.site, arguments.root, return_state=True)
    if not state.is_completed():
        return failed(state.result(raise_on_failure=False))
    made = {name: f"asset/{key}" for name, key in state.result().items()}
    if arguments.json:
        print_json(made)
    else:
        print("\n".join(f"{name}: {asset}" for name, asset in made.items()))
    return 0
