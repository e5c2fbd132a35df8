"""What the pages of `bsl adapt` and `bsl field` have in common: samples of the text, and how to make it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from models.report.html import Code, Facts, Folded, Part, Prose, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_PARTS: Final = {"train": "learnt", "choose": "that choose", "report": "that report"}


@dataclass(frozen=True)
class OwnText:
    """Whose text it was, and how the same is made of it again.

    Attributes:
        files: a row a source, how its columns were read.
        labels: how those were read, in a sentence; empty without any.
        counts: of sentences and documents, by name.
        samples: title → rows of held-out sentences, or of sentences beside their views.
        command: that starts it again.
        settings: complete, as JSON text.
        environment: what it ran on: commit, versions, system.
    """

    files: Sequence[Mapping[str, str]]
    labels: str
    counts: Mapping[str, object]
    samples: Mapping[str, Sequence[Mapping[str, object]]]
    command: str
    settings: str
    environment: Mapping[str, str]


def text_part(own: OwnText) -> Part:
    """The text: how it was read, how much is held out, and some of it."""
    counts = {
        _spelled(name): f"{value:,}" if isinstance(value, int) else str(value) for name, value in own.counts.items()
    }
    files = [Table.of("What each column was taken to hold", own.files)] if own.files else []
    labels = [Prose(own.labels)] if own.labels else []
    return Part(
        "Your text", [Facts(counts), *files, *labels, *(Table.of(title, rows) for title, rows in own.samples.items())]
    )


def _spelled(name: str) -> str:
    """`train sentences` as `sentences learnt`."""
    part, _, what = name.partition(" ")
    return f"{what} {_PARTS[part]}" if part in _PARTS else name


def again_part(own: OwnText) -> Part:
    """The command, what it ran on, every setting."""
    settings = Folded("The complete settings", [Code(own.settings)])
    return Part("Have it again", [Code(own.command), Facts(own.environment), settings])
