"""`bsl assets build|verify|ls`: the models and texts that travel in the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from flows.cli.options import add_site_options
from flows.server import start_server, use_server
from flows.site import site_of

if TYPE_CHECKING:
    import argparse


def define_assets(parser: argparse.ArgumentParser) -> None:
    """The verb with its three forms."""
    forms = parser.add_subparsers(dest="form", required=True, metavar="FORM")
    forms.add_parser("ls", help="what there is, with licences and sizes").set_defaults(call=_list)
    forms.add_parser("verify", help="recompute checksums and figures (minutes)").set_defaults(call=_verify)
    build = forms.add_parser("build", help="train all models from a mirror of licensed collections")
    build.add_argument("--config", type=Path, help="JSON file with fields of AssetsConfig to change")
    build.add_argument("--root", type=Path, help="folder to pack into; the package's own unless given")
    add_site_options(build)
    build.set_defaults(call=_build)


def _list(_: argparse.Namespace) -> int:
    from storage.embedded import embedded_manifest, embedded_names, embedded_path

    table = Table("asset", "kind", "MB", "licence", "description")
    for name in embedded_names():
        embedded_path(name)
        manifest = embedded_manifest(name)
        size = sum(entry.size for entry in manifest.files.values()) / 1e6
        table.add_row(name, manifest.kind, f"{size:.1f}", manifest.licence, manifest.description)
    Console(width=max(120, Console().width)).print(table)
    return 0


def _verify(_: argparse.Namespace) -> int:
    from tasks.assets.verify import verify

    checks = verify()
    table = Table("", "asset", "figure", "recorded", "found")
    for check in checks:
        recorded = "none" if check.recorded is None else f"{check.recorded:g}"
        table.add_row("ok" if check.holds else "NO", check.asset, check.figure, recorded, f"{check.found:g}")
    Console(width=max(100, Console().width)).print(table)
    return 0 if all(check.holds for check in checks) else 1


def _build(arguments: argparse.Namespace) -> int:
    use_server()
    embedded = start_server()
    from flows.assets import AssetsConfig, assets

    config = AssetsConfig.model_validate_json(arguments.config.read_bytes()) if arguments.config else AssetsConfig()
    site = site_of(vars(arguments))
    if embedded is not None:
        embedded.wait()
    for name, key in assets(config, site, arguments.root).items():
        print(f"{name}: asset/{key}")
    return 0
