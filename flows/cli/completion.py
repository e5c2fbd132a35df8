"""`bsl completion SHELL`: what makes a shell complete verbs and options."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

SHELLS = ("bash", "zsh", "tcsh")


def define_completion(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("shell", choices=SHELLS, help='bash: eval "$(bsl completion bash)", in ~/.bashrc for good')
    parser.set_defaults(call=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    import shtab

    from flows.cli.main import parser_of
    from flows.cli.verbs import VERBS

    print(shtab.complete(parser_of([verb.name for verb in VERBS]), arguments.shell))
    return 0
