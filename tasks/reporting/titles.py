"""Names in titles: an encoder and a text by name, never by path."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from bsl.storage.assets.embedded import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsl.storage.sources.own_text import TextSource

_ARTIFACT: Final = re.compile(r"(report|checkpoint|embeddings)/([0-9a-f]{8})[0-9a-f]*")


def encoder_name(encoder: str) -> str:
    """Return the name of an encoder: the last part of a path or Hub id, without `embedded:`; a short artifact name."""
    if found := _ARTIFACT.fullmatch(encoder):
        return f"{found[1]}/{found[2]}"
    name = encoder.removeprefix(EMBEDDED)
    return name if name.startswith(("report/", "checkpoint/")) else name.rstrip("/").rsplit("/", 1)[-1] or encoder


def system_names(labels: Iterable[str]) -> dict[str, str]:
    """Return label → name of each system; labels with the same name stay as they are."""
    names = {label: encoder_name(label) for label in labels}
    counts = Counter(names.values())
    return {label: name if counts[name] == 1 else label for label, name in names.items()}


def text_name(sources: Sequence[TextSource]) -> str:
    """Return the name of the only file of a text, else that of its first source and the number of others."""
    if not sources:
        return "your text"
    first, *others = sources
    name = first.files[0].rsplit("/", 1)[-1] if len(first.files) == 1 else first.name
    return f"{name} and {len(others)} more" if others else name
