"""The command that repeats a run, as its page shows it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def command_of(verb: str, names: Sequence[str], options: Mapping[str, str | None], changes: Sequence[str] = ()) -> str:
    """The command.

    Args:
        verb: of `bsl`.
        names: what follows it: a recipe, or files.
        options: name → value; None for those that were not given.
        changes: `field=value` of settings that have no option of their own.
    """
    words = ["bsl", verb, *names]
    words += [word for name, value in options.items() if value is not None for word in (f"--{name}", value)]
    return shlex.join([*words, *(word for change in changes for word in ("--set", change))])
