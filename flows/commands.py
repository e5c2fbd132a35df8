"""What to type for a run of somebody's own text again, which its page tells."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def command_of(verb: str, texts: Sequence[str], options: Mapping[str, str | None], changes: Sequence[str] = ()) -> str:
    """The command.

    Args:
        verb: of `bsl`.
        texts: the files.
        options: name → value of those that were given.
        changes: `field=value` of those that only `--set` can change.
    """
    words = ["bsl", verb, *texts]
    words += [word for name, value in options.items() if value is not None for word in (f"--{name}", value)]
    return shlex.join([*words, *(word for change in changes for word in ("--set", change))])
