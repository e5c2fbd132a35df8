"""Name a file of labels and its columns in one string, as options, settings and names of evaluation sets need it.

Example:
    >>> label_file("tickets.csv#label=queue&text=body")
    LabelFile(path='tickets.csv', label='queue', texts=('body',), encoding=None, document=None)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from bsl.storage.readers.encodings import known_encoding

if TYPE_CHECKING:
    from collections.abc import Sequence

SET_PREFIX: Final = "labels:"
"""Before a file in the name of an evaluation set."""
_LABEL, _TEXT, _DOCUMENT, _ENCODING = "label", "text", "document", "encoding"
COLUMNS: Final = re.compile(r"(?s)(.*)#((?:label|text|document|encoding)=.*)")
"""A name with columns: its file, and the columns after `#`."""


class LabelFile(NamedTuple):
    """A file of labels, and the columns that the user named."""

    path: str
    label: str | None = None
    texts: tuple[str, ...] = ()
    encoding: str | None = None
    document: str | None = None

    @property
    def name(self) -> str:
        """The file and its columns in one string."""
        texts = [(_TEXT, text) for text in self.texts]
        fields = [(_LABEL, self.label), *texts, (_DOCUMENT, self.document), (_ENCODING, self.encoding)]
        given = [(field, value) for field, value in fields if value is not None]
        return f"{self.path}#{urlencode(given)}" if given else self.path


def label_file(name: str) -> LabelFile:
    """Return the file and columns of a name: `FILE` or `FILE#label=NAME&text=NAME&document=NAME&encoding=NAME`.

    Raises:
        ValueError: a field is unknown or repeated, or an encoding is unknown.
    """
    found = COLUMNS.fullmatch(name)
    if found is None:
        return LabelFile(name)
    fields = parse_qsl(found[2], keep_blank_values=True)
    single = {once: [value for field, value in fields if field == once] for once in (_LABEL, _DOCUMENT, _ENCODING)}
    if {field for field, _ in fields} - {_TEXT, *single} or any(len(values) > 1 for values in single.values()):
        raise ValueError(
            f"{name}: expected the columns after # as label=NAME&text=NAME&document=NAME, with at most one label, one "
            "document and one encoding"
        )
    texts = tuple(value for field, value in fields if field == _TEXT)
    label, document, encoding = (next(iter(values), None) for values in single.values())
    return LabelFile(found[1], label, texts, None if encoding is None else known_encoding(encoding), document)


def with_label_columns(
    name: str,
    label: str | None = None,
    texts: Sequence[str] = (),
    encoding: str | None = None,
    document: str | None = None,
) -> str:
    """Return the name of a file of labels with these columns; columns in the name itself take precedence."""
    given = label_file(name)
    return given._replace(
        label=label if given.label is None else given.label,
        texts=given.texts or tuple(texts),
        encoding=given.encoding or encoding,
        document=document if given.document is None else given.document,
    ).name


def set_with_label_columns(name: str, label: str | None, texts: Sequence[str], document: str | None = None) -> str:
    """Return the name of an evaluation set with these columns, if it is a file of labels; else the name unchanged."""
    if not name.startswith(SET_PREFIX):
        return name
    return SET_PREFIX + with_label_columns(name.removeprefix(SET_PREFIX), label, texts, document=document)
