"""`bsl pairs MODEL CORPUS`: the sentences of a corpus that are most like each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.cli.terminal.options import add_use_options, opened_index, print_json, print_table

if TYPE_CHECKING:
    import argparse


def define_pairs(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    add_use_options(parser)
    parser.add_argument("corpus", metavar="CORPUS", help="text, CSV, JSONL or Parquet; a folder or a pattern with *")
    parser.add_argument("--top", type=int, default=20, help="pairs (20)")
    parser.add_argument("--above", type=float, default=-1.0, help="cosine that a pair exceeds (none)")
    parser.set_defaults(call=_pairs)


def _pairs(arguments: argparse.Namespace) -> int:
    if arguments.top < 1:
        raise ValueError(f"--top {arguments.top}: expected 1 or more")
    pairs = opened_index(arguments).pairs(arguments.top, arguments.above)
    if arguments.json:
        print_json(pairs)
    elif pairs:
        rows = [{"cosine": f"{score:.3f}", "sentence": first, "other": second} for score, first, second in pairs]
        print_table(arguments.corpus, rows)
    else:
        print(f"no two sentences have a cosine above {arguments.above:g}")
    return 0
