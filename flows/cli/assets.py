"""`bsl assets ls`: the models and texts in the package."""

from __future__ import annotations

from bsl.flows.cli.terminal.options import Output
from bsl.flows.cli.terminal.printing import print_rows


def ls(*, output: Output = Output()) -> None:
    """List them, with licences, sizes and checksums; check every file."""
    from bsl.storage.assets.catalog import embedded_manifest
    from bsl.storage.assets.embedded import embedded_names, embedded_path

    rows = []
    for name in embedded_names():
        embedded_path(name)
        manifest = embedded_manifest(name)
        size = sum(entry.size for entry in manifest.files.values()) / 1e6
        digest = manifest.digest if output.json else manifest.digest[:12]
        row = {"asset": name, "kind": manifest.kind, "MB": f"{size:.1f}", "licence": manifest.licence, "sha256": digest}
        rows.append({**row, "description": manifest.description})
    print_rows("In the package", rows, output)
