"""`bsl embed MODEL IN OUT.parquet`: a file's sentences as vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.printable import printable
from flows.cli.terminal.options import add_use_options, print_json, showing_use, used_precision, used_site

if TYPE_CHECKING:
    import argparse


def define_embed(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    add_use_options(parser)
    parser.add_argument("source", metavar="IN", help="text, CSV, JSONL or Parquet; a folder or a pattern with *")
    parser.add_argument("target", metavar="OUT.parquet", type=Path, help="columns text and embedding, rows as in IN")
    parser.set_defaults(call=_embed)


def _embed(arguments: argparse.Namespace) -> int:
    site, source = used_site(arguments), arguments.source
    from storage.sources.sources import SourceSpec
    from tasks.serving.search import embed_file
    from tasks.stage.ui import progress_of

    with showing_use(site, f"reading {source}"):
        done = embed_file(
            site,
            arguments.model,
            SourceSpec(path=source, columns=tuple(filter(None, [arguments.column]))),
            arguments.target,
            used_precision(arguments, site),
            progress_of("embedding, sentences"),
        )
    if arguments.json:
        print_json({"sentences": done, "file": arguments.target})
    else:
        print(printable(f"{done:,} sentences: {arguments.target}"))
    return 0
