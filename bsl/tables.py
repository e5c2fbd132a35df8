"""Tables and lists of the caller's program as files of texts and labels, for functions that read files.

A table is a DataFrame of pandas or Polars, an Arrow table, a `datasets.Dataset`, a dictionary of columns or a list of
dictionaries. A list of texts may replace a table of texts, and (texts, labels) or (texts, texts, scores) a table of
labels.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.encoder.texts import column_of, texts_of
from bsl.models.errors import ModelError
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.errors import StorageError
from bsl.storage.filesystem.values import described, require_name
from bsl.storage.readers.formats import is_readable
from bsl.storage.readers.text_columns import is_prose
from bsl.storage.sources.labels import SET_PREFIX

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, TypeGuard

_PATHS: Final = (str, Path)
_FORMS: Final = "a file, a list of texts, or a table of pandas, Polars, Arrow or datasets"
_LABEL_FORMS: Final = (
    "a file, a table, a tuple (texts, labels) or (texts, texts, scores), or the labels of the given list of texts"
)
# An option in messages of commands, and in parentheses the same in other commands.
_NOTE: Final = re.compile(r"(`?--[a-z-]+`?) \((?:name of a set|embed, search)[^()]*\)")
_OPTION: Final = re.compile(r"`?--([a-z][a-z-]+)`?")
_PARAMETERS: Final = {"columns": "texts=table['NAME']", "text-column": "text_columns", "for": "used_for"}
_PATH: Final = 256  # characters; a longer string is no name of a file
_FEW: Final = 20  # strings that may all be misspelt names; more are texts
_COLUMNS: Final = {2: ("text", "label"), 3: ("sentence1", "sentence2", "score")}


class Files:
    """Files of the tables and lists that a function was given, in a temporary folder, until the `with` block ends."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (StorageError, ModelError, ValueError)) and isinstance(next(iter(error.args), None), str):
            error.args = (_of_a_call(self.without_folder_in(error.args[0])), *error.args[1:])
        self._stack.close()

    def texts(self, given: object, *, labelled: bool = False) -> list[str]:
        """Return names of files of texts; a list or column of texts, or a table, is written to one.

        Args:
            given: Names, texts or a table.
            labelled: Whether the caller also gave a label for each text of the list.

        Raises:
            TypeError: It is none of these.
        """
        if isinstance(given, _PATHS):
            return [require_name(str(given), "texts")]
        if (table := _table(given)) is not None:
            return [self._written("texts", table)]
        if not labelled and _is_names(given):
            return [require_name(str(name), "texts") for name in given]
        if column_of(given) is None:
            raise TypeError(f"texts is {described(given)}, expected {_FORMS}")
        return [self._written("texts", pl.DataFrame({"text": texts_of(given)}))]

    def labels(self, given: object, texts: object = None) -> str:
        """Return the name of a file of labels; anything else is written to one.

        Args:
            given: A file, a table, a tuple of columns, or the labels of `texts`.
            texts: The list of texts that the caller gave too.

        Raises:
            TypeError: It is none of these.
            ValueError: Columns differ in length.
        """
        if isinstance(given, _PATHS):
            return require_name(str(given), "labels")
        table = _table(given)
        if table is None and isinstance(given, tuple) and len(given) in _COLUMNS:
            table = _of_columns(_COLUMNS[len(given)], given)
        elif table is None and is_column(given) and column_of(texts) is not None and _table(texts) is None:
            table = _of_columns(_COLUMNS[2], (texts, given))
        if table is None:
            raise TypeError(f"labels is {described(given)}, expected {_LABEL_FORMS}")
        return self._written("labels", table)

    def suite(self, given: object) -> list[str]:
        """Return names of evaluation sets; a table or tuple of labels is written to a file.

        Raises:
            TypeError: It is neither names nor tables.
        """
        if isinstance(given, _PATHS):
            given = [given]
        if _table(given) is not None or _is_labelled(given):
            given = [given]
        if not isinstance(given, Iterable):
            raise TypeError(f"suite is {described(given)}, expected names of suites and sets, or tables of labels")
        return [_set_named(one) if isinstance(one, str) else f"{SET_PREFIX}{self.labels(one)}" for one in given]

    def without_folder(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return a table without the name of the temporary folder in its names of sets."""
        if self._folder is None:
            return table
        return table.with_columns(pl.col(pl.String).str.replace_all(f"{self._folder}/", "", literal=True))

    def without_folder_in(self, text: str) -> str:
        """Return a text alike."""
        return text if self._folder is None else text.replace(f"{self._folder}/", "")

    def _written(self, name: str, table: pl.DataFrame) -> str:
        if self._folder is None:
            self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bsl-")))
        if table.is_empty():
            raise ValueError(f"the table of {name} is empty, expected rows and columns")
        path = self._folder / f"{name}.parquet"
        while path.exists():
            path = path.with_stem(f"{path.stem}-more")
        words = pl.selectors.boolean() | pl.selectors.categorical() | pl.selectors.enum()
        table.with_columns(words.cast(pl.String), pl.selectors.float().fill_nan(None)).write_parquet(path)
        return str(path)


def _of_a_call(message: str) -> str:
    """Return an error's message with parameters in the place of a command's options."""
    said = _NOTE.sub(r"\1", message)
    return _OPTION.sub(lambda found: _PARAMETERS.get(found[1], found[1].replace("-", "_")), said)


def _table(given: object) -> pl.DataFrame | None:
    """Return a table of any library as strings and numbers; None for anything else."""
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    value: Any = given
    if isinstance(given, pl.LazyFrame | pl.DataFrame):
        return given.lazy().collect()
    if (package, kind) == ("pandas", "DataFrame"):
        return _from_pandas(value)
    if (package, kind) == ("pyarrow", "Table"):
        return pl.DataFrame(pl.from_arrow(value))
    if (package, kind) == ("datasets", "Dataset"):
        return _from_dataset(value)
    if isinstance(given, Mapping):
        if package == "datasets":
            raise TypeError(f"{kind} has the splits {', '.join(map(str, given))}. Pass one of them.")
        return pl.DataFrame({str(name): _known(column) or column for name, column in given.items()}, strict=False)
    if isinstance(given, list) and given and all(isinstance(row, Mapping) for row in given):
        rows = [{name: None if _is_nan(value) else value for name, value in row.items()} for row in given]
        return pl.from_dicts(rows, infer_schema_length=None)  # the first rows may have only missing values
    return None


def _known(column: object) -> list[Any] | None:
    """Return a list or a column of a table as a list, whose missing values are None; None for anything else."""
    found = column_of(column)
    return None if found is None else [None if _is_nan(value) else value for value in found]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _from_pandas(table: Any) -> pl.DataFrame:  # noqa: ANN401 - pandas is not a dependency
    """Return a DataFrame of pandas; missing values of any kind are null."""
    columns = {}
    for name in table.columns:
        values, missing = table[name].tolist(), table[name].isna().tolist()
        known = [None if is_missing else value for value, is_missing in zip(values, missing, strict=True)]
        columns[str(name)] = pl.Series(known, strict=False)
    return pl.DataFrame(columns)


def _from_dataset(dataset: Any) -> pl.DataFrame:  # noqa: ANN401 - `datasets` has no types
    """Return a dataset; classes by their names, as its card lists them."""
    table = pl.DataFrame(pl.from_arrow(dataset.with_format("arrow")[:]))
    named = {name: feature.names for name, feature in dataset.features.items() if getattr(feature, "names", None)}
    return table.with_columns(
        pl.col(name).replace_strict(range(len(names)), names, default=None, return_dtype=pl.String)
        for name, names in named.items()
    )


def is_column(given: object) -> bool:
    """Return whether a value is one column of labels: no name of a file, no table, no tuple of columns."""
    return column_of(given) is not None and _table(given) is None and not _is_labelled(given)


def _is_names(given: object) -> TypeGuard[Sequence[str | Path]]:
    """Return whether a sequence is of names of files or datasets: paths, or a few strings that are no prose."""
    if not isinstance(given, Sequence) or not all(isinstance(one, _PATHS) for one in given):
        return False
    if any(isinstance(one, Path) or (len(one) < _PATH and Path(one).exists()) for one in given):
        return True
    # Texts may be short, or few and repeated. Names may be misspelt, so that no such file exists.
    unlike = [one for one in given if not _looks_like_name(str(one))]
    return not unlike or (len(given) <= _FEW and not is_prose(pl.Series(list(map(str, given)), dtype=pl.String)))


def _looks_like_name(text: str) -> bool:
    return is_readable(text) or text.startswith(EMBEDDED) or ("/" in text and not any(map(str.isspace, text)))


def _set_named(name: str) -> str:
    if len(require_name(name, "suite")) < _PATH and is_readable(name) and Path(name).is_file():
        raise ValueError(f"{name} is a file, expected a set. Pass '{SET_PREFIX}{name}' or 'own:{name}'")
    return name


def _is_labelled(given: object) -> bool:
    return isinstance(given, tuple) and len(given) in _COLUMNS and not any(isinstance(one, _PATHS) for one in given)


def _of_columns(names: Sequence[str], columns: Sequence[object]) -> pl.DataFrame:
    lists = [_known(column) for column in columns]
    for name, column, found in zip(names, columns, lists, strict=True):
        if found is None:
            raise TypeError(f"{name} of the labels is {described(column)}, expected a list or a column of a table")
    sizes = [len(found) for found in lists if found is not None]
    if len({*sizes}) > 1:
        raise ValueError(f"{' and '.join(names)} have {' and '.join(map(str, sizes))} values, expected the same number")
    return pl.DataFrame({name: pl.Series(found, strict=False) for name, found in zip(names, lists, strict=True)})
