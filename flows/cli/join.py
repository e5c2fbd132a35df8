"""`bsl join HOST:PORT --nodes 2 --node 1`: this machine's share of a training that another one runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.cli.options import add_json, print_json, used_site

if TYPE_CHECKING:
    import argparse


def define_join(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("rendezvous", metavar="HOST:PORT", help="as the first machine was told; waited for")
    parser.add_argument("--nodes", type=int, required=True, help="machines, the first one included")
    parser.add_argument("--node", type=int, required=True, help="number of this one, from 1; the first is 0")
    parser.add_argument("--processes", type=int, help="as on the first machine, one a GPU (BSL_PROCESSES; 1)")
    parser.add_argument("--store", help="URL of the store that all share (BSL_STORE)")
    parser.add_argument("--mirror", help="folder that stands in for the Hub (BSL_DATA_MIRROR)")
    parser.add_argument("--device", help="cpu or cuda (BSL_DEVICE; a GPU if there is one)")
    add_json(parser)
    parser.set_defaults(call=_join)


def _join(arguments: argparse.Namespace) -> int:
    site = used_site(arguments)
    from tasks.train_together import join_training

    join_training(site, arguments.node)
    if arguments.json:
        print_json({"rendezvous": site.rendezvous, "node": arguments.node, "nodes": site.nodes})
    else:
        print(f"{site.rendezvous}: the training has ended; what it made is in {site.open_store().url}")
    return 0
