"""`bsl embed`, `bsl search`, `bsl pairs`: an encoder in use, on sentences of a file."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from flows.cli.terminal.log_lines import printable
from flows.cli.terminal.options import add_json, add_place_options, add_precision, print_json, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from models.runtime.precision import Computed
    from tasks.serving.search import Index
    from tasks.stage.run_context import RunContext


def define_search(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    _add_use_options(parser)
    parser.add_argument("corpus", metavar="CORPUS", help="text, CSV, JSONL or Parquet; a folder or a pattern with *")
    parser.add_argument("query", nargs="*", metavar="QUERY", help="what to look for")
    parser.add_argument("--top", type=int, default=10, help="sentences a query (10)")
    parser.add_argument("--interactive", action="store_true", help="ask for queries until an empty line")
    parser.set_defaults(call=_search)


def _search(arguments: argparse.Namespace) -> int:
    if not arguments.query and not arguments.interactive:
        raise ValueError('expected a query, such as bsl search MODEL CORPUS "a man plays", or --interactive')
    if arguments.top < 1:
        raise ValueError(f"--top {arguments.top}: expected 1 or more")
    index = _opened_index(arguments)

    def answer(queries: list[str]) -> None:
        results = dict(zip(queries, index.search(queries, arguments.top), strict=True))
        if arguments.json:
            print_json(results)
            return
        for query, hits in results.items():
            print_table(query, [{"cosine": f"{score:.3f}", "sentence": text} for score, text in hits])

    if arguments.query:
        answer(arguments.query)
    while arguments.interactive:
        print("query: ", end="", file=sys.stderr, flush=True)
        if not (query := sys.stdin.readline().strip()):
            break
        answer([query])
    return 0


def define_embed(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    _add_use_options(parser)
    parser.add_argument("source", metavar="IN", help="text, CSV, JSONL or Parquet; a folder or a pattern with *")
    parser.add_argument("target", metavar="OUT.parquet", type=Path, help="columns text and embedding, rows as in IN")
    parser.set_defaults(call=_embed)


def _embed(arguments: argparse.Namespace) -> int:
    site, source = _used_site(arguments), arguments.source
    from storage.sources.sources import SourceSpec
    from tasks.serving.search import embed_file
    from tasks.stage.ui import progress_of

    with _showing_use(site, f"reading {source}"):
        done = embed_file(
            site,
            arguments.model,
            SourceSpec(path=source, columns=tuple(filter(None, [arguments.column]))),
            arguments.target,
            _used_precision(arguments, site),
            progress_of("embedding, sentences"),
        )
    if arguments.json:
        print_json({"sentences": done, "file": arguments.target})
    else:
        print(printable(f"{done:,} sentences: {arguments.target}"))
    return 0


def define_pairs(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    _add_use_options(parser)
    parser.add_argument("corpus", metavar="CORPUS", help="text, CSV, JSONL or Parquet; a folder or a pattern with *")
    parser.add_argument("--top", type=int, default=20, help="pairs (20)")
    parser.add_argument("--above", type=float, default=-1.0, help="cosine that a pair exceeds (none)")
    parser.set_defaults(call=_pairs)


def _pairs(arguments: argparse.Namespace) -> int:
    if arguments.top < 1:
        raise ValueError(f"--top {arguments.top}: expected 1 or more")
    pairs = _opened_index(arguments).pairs(arguments.top, arguments.above)
    if arguments.json:
        print_json(pairs)
    elif pairs:
        rows = [{"cosine": f"{score:.3f}", "sentence": first, "other": second} for score, first, second in pairs]
        print_table(arguments.corpus, rows)
    else:
        print(f"no two sentences have a cosine above {arguments.above:g}")
    return 0


def _add_use_options(parser: argparse.ArgumentParser) -> None:
    """What the verbs that use an encoder share: its name, which comes first, and where they work."""
    parser.add_argument(
        "model", metavar="MODEL", help="folder, Hub id, embedded:<name>, checkpoint/<key>, report/<key>"
    )
    add_json(parser)
    parser.add_argument("--column", help="column of the sentences, where a file has several of text")
    add_precision(parser, "of the encoder")
    add_place_options(parser)


def _used_site(arguments: argparse.Namespace) -> RunContext:
    """Where an encoder is used: no flow runs, so Prefect starts no server."""
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # else each load draws a bar of its own
    from flows.prefect_server.server import use_server
    from flows.run_context import run_context_of

    use_server()
    # No Prefect here, which sends shards to others.
    return run_context_of(vars(arguments)).model_copy(update={"cluster": None})


def _opened_index(arguments: argparse.Namespace) -> Index:
    """The corpus that a command names, embedded."""
    site = _used_site(arguments)
    from storage.sources.sources import SourceSpec
    from tasks.serving.search import index

    columns = tuple(filter(None, [arguments.column]))
    spec = SourceSpec(path=arguments.corpus, columns=columns)
    with _showing_use(site, f"reading {arguments.corpus}"):
        found = index(site, arguments.model, spec, _used_precision(arguments, site))
    print(printable(f"{arguments.corpus}: {found.taken}"), file=sys.stderr)
    return found


def _used_precision(arguments: argparse.Namespace, site: RunContext) -> Computed:
    """What the encoder computes in on this machine, said on the error stream."""
    from flows.run_context import computed
    from models.runtime.precision import explained
    from tasks.stage.device import device_of

    print(f"precision: {explained(arguments.precision, device_of(site))}", file=sys.stderr)
    return computed(arguments.precision, site)


@contextmanager
def _showing_use(site: RunContext, first: str) -> Iterator[None]:
    """Show on the error stream how far an encoder's use has come; `first` says what it begins with."""
    from flows.cli.terminal.progress import watching
    from models.runtime.progress import Progress

    with watching(site.open_store(), None, Console(stderr=True)) as terminal:
        terminal.show("", Progress(first, 0, 0))
        yield
