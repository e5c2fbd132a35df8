"""Check the texts that a caller passes to an encoder, and convert columns of tables to lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bsl.models.errors import NoEmbeddingError
from bsl.storage.filesystem.values import brief, described

# Types of columns → the method that gives a list; told apart by name, so that none of the packages is imported.
_COLUMNS: Final = {
    ("numpy", "ndarray"): "tolist",
    ("pandas", "Series"): "tolist",
    ("pandas", "Index"): "tolist",
    ("polars", "Series"): "to_list",
    ("pyarrow", "Array"): "to_pylist",
    ("pyarrow", "ChunkedArray"): "to_pylist",
    ("datasets", "Column"): "__iter__",
}
_READ: Final = 1_000  # characters of a text
_LAST_LATIN: Final = "\u024f"
OTHER_ENCODER: Final = (
    "Choose an encoder for their language, for example sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2."
)
"""What to do if an encoder's tokenizer knows hardly a word of the texts."""
_TABLES: Final = ("pandas", "polars", "datasets", "pyarrow")


def is_foreign(text: str) -> bool:
    """Return whether most letters of a text are not Latin; a tokenizer may know no word of such a text."""
    letters = [letter for letter in text[:_READ] if letter.isalpha()]
    return 2 * sum(letter > _LAST_LATIN for letter in letters) > len(letters)


def texts_of(texts: object) -> list[str]:
    """Return texts as a list.

    Args:
        texts: A list, tuple or other sequence of strings, or a column: a one-dimensional array of NumPy or Arrow, or a
            Series of pandas or Polars.

    Raises:
        TypeError: It is anything else, such as one string, a table, a dict, a generator, or a list of pairs.
        NoEmbeddingError: A text is missing (None, NaN), a number, or not valid Unicode.
    """
    found: list[Any] | None = texts if isinstance(texts, list) else _column(texts)
    if found is None:
        if isinstance(texts, str | bytes | bytearray | memoryview) or not isinstance(texts, Sequence):
            raise TypeError(_remedy(texts))
        found = list(texts)
    if {*map(type, found)} - {str}:
        refuse_first_bad(found, 0)
    return found


def column_of(values: object) -> list[Any] | None:
    """Return a list, a tuple or a column as a list; None for anything else, such as one string or a table."""
    return list(values) if isinstance(values, list | tuple) else _column(values)


def refuse_first_bad(texts: Sequence[object], first_row: int) -> None:
    """Raise an error for the first invalid text; a tokenizer's error does not name the row.

    Raises:
        TypeError: A text is a sequence or an object with fields.
        NoEmbeddingError: A text is not a string, or contains a lone surrogate.
    """
    for row, text in enumerate(texts, start=first_row):
        if isinstance(text, list | tuple | dict | set):
            raise TypeError(
                f"text {row} is {described(text)}, expected a string. Pass a list of "
                "strings; to compare pairs, encode the first and the second texts separately."
            )
        if not isinstance(text, str):
            raise NoEmbeddingError(row, f"is {brief(text)}, expected a string. Remove rows without text.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise NoEmbeddingError(
                row,
                f"contains half of a character (a lone surrogate) at position {error.start}. Read the file again as "
                "UTF-8.",
            ) from error


def _column(texts: object) -> list[Any] | None:
    """Return a column as a list; None for anything else, such as a table or a matrix."""
    method = next((_COLUMNS[key] for key in map(_name, type(texts).__mro__) if key in _COLUMNS), None)
    if method is None or getattr(texts, "ndim", 1) != 1:
        return None
    return list(getattr(texts, method)())


def _name(kind: type) -> tuple[str, str]:
    return kind.__module__.partition(".")[0], kind.__name__


def _remedy(texts: object) -> str:
    found = f"texts is {described(texts)}"
    if isinstance(texts, str):
        return f"{brief(texts)} is a string, expected a list of strings: [text]"
    if isinstance(texts, bytes | bytearray | memoryview):
        return f"{found}, expected a list of strings. Decode it and pass [text.decode()]."
    if type(texts).__module__.partition(".")[0] in _TABLES:
        return f'{found}, expected a list of strings. Pass one column: list(table["column"]).'
    if isinstance(texts, dict):
        return f"{found}, expected a list of strings. Pass list(texts.values())."
    if getattr(texts, "ndim", 1) != 1:
        return f"{found}, expected a list of strings or an array of one dimension. Pass texts.ravel().tolist()."
    if hasattr(texts, "__iter__"):
        return f"{found}, which has no order or length, expected a list of strings. Pass list(texts)."
    return f"{found}, expected a list of strings: [text]"
