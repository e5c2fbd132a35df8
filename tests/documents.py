"""Extract the commands of a document."""

import re
import shlex

BLOCK = re.compile(r"^```sh\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(bsl [^`]+)`")


def commands(page):
    """Yield each command of a page's shell blocks as words, without comments and `&`."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield [word for word in words if word != "&"]


def mentions(page):
    """Yield each `bsl …` in a page's prose as words, without ellipses (…)."""
    for told in INLINE.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        yield [word for word in shlex.split(told)[1:] if word != "…"]
