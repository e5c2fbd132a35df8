"""`bsl search MODEL CORPUS "query"`: the sentences of a corpus that are most like another."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flows.cli.terminal.options import add_use_options, opened_index, print_json, print_table

if TYPE_CHECKING:
    import argparse


def define_search(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    add_use_options(parser)
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
    index = opened_index(arguments)

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
