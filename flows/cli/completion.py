"""`bsl completion SHELL`: the script by which a shell completes verbs and options."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from flows.cli.terminal.options import Debug


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], Parameter(help='for bash: eval "$(bsl completion bash)" in ~/.bashrc')
    ],
    /,
    *,
    debug: Debug = False,  # noqa: ARG001 - every verb has it
) -> int:
    """Print the script that makes your shell complete verbs and options."""
    from flows.cli.main import app

    print(app.generate_completion(shell=shell))
    return 0
