"""The commands that a document tells people to type."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```sh\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(bsl [^`]+)`")


def commands(page: Path) -> Iterator[list[str]]:
    """Each command of a page's blocks, as words, without remarks and what leaves it in the background."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield [word for word in words if word != "&"]


def mentions(page: Path) -> Iterator[list[str]]:
    """Each `bsl …` in a page's prose, as words; what is left out of it (…) is left out."""
    for told in INLINE.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        yield [word for word in shlex.split(told)[1:] if word != "…"]
