"""The commands that a document tells people to type."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```sh\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> Iterator[list[str]]:
    """Each command of a page's blocks, as words, without remarks and what leaves it in the background."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield [word for word in words if word != "&"]
