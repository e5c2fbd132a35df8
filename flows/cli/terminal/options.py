"""Options of commands, each declared once: by the field of its setting, or here if it is no setting.

A command is a function; its parameters are its options. A group of options is a dictionary of the given ones by the
names of a model's fields (`options_of`), or a frozen dataclass.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict, Union, get_args, get_origin

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from bsl.flows.cli.terminal.overrides import changes_of, refuse_contradictions
from bsl.storage.record import description
from bsl.tasks.stage.run_context import RunContext, variable_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cyclopts import Token
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

FIRST: Final = "Parameters"  # cyclopts' own group, before the others: what a user needs first
LABELLED: Final = Group("Reading labels", sort_key=1)
FILES: Final = Group("Reading files", sort_key=2)
SETTINGS: Final = Group("Settings", sort_key=3)
PLACE: Final = Group("Runtime", sort_key=4)
OUTPUT: Final = Group("Output", sort_key=5)
ENCODER_FORMS: Final = "folder, Hub id, embedded:<name>, checkpoint/<key> or report/<key>"
NOT_GIVEN: Final[Mapping[str, Any]] = {}
"""No options of a group."""
SEVERAL: Final = Parameter(consume_multiple=(1, None))
"""One or more words after an option."""
COUNT: Final = Parameter(validator=Number(gte=1))
"""A number of at least 1."""


def _check_exists(_: object, address: str | None) -> None:
    """Refuse a local path that does not exist."""
    from bsl.storage.filesystem.spelling import perhaps_path
    from bsl.storage.filesystem.urls import is_missing

    if address is not None and is_missing(address):
        raise ValueError(f"No such folder{perhaps_path(address)}. Correct the name.")


EXISTING: Final = Parameter(validator=_check_exists)
"""A folder or an address; a folder must exist."""


def _new_path(_: type, words: Sequence[Token]) -> Path:
    """Return the path of a result, with `~` expanded; a `Path` of an address would be a folder `s3:`."""
    from bsl.storage.filesystem.urls import at_home

    address = words[0].value
    if "://" in address:
        raise ValueError(f"{address}: is an address, expected a path on this machine. Write there, and copy the result")
    return Path(at_home(address))


NEW_PATH: Final = Parameter(converter=_new_path)
"""A new file or folder of this machine."""
_SENTENCE: Final = re.compile(r"(?<=[.])\s")


def option_of(model: type[BaseModel], name: str, changed: Parameter | None = None) -> Any:  # noqa: ANN401 - a type
    """Return the type of an option: the type, choices, help and default of a model's field.

    cyclopts takes models as groups of options too. But it makes options of all fields and nested fields, passes numbers
    as text, which a `Record` refuses, and validates the options before `--config` and `--set` are merged with them.

    Args:
        model: Settings.
        name: Field. The first sentence of its description is the help.
        changed: What the command line does otherwise, such as the name of the option.
    """
    field = model.model_fields[name]
    kind = _plain(field.annotation)
    several = SEVERAL if get_origin(kind) is tuple else None
    given = kind if kind is bool else kind | None  # a flag takes no value
    return Annotated[given, Parameter.combine(Parameter(help=_help(model, name, field)), several, changed)]


def options_of(model: type[BaseModel], names: Iterable[str], group: Group | str, **changed: Parameter) -> Any:  # noqa: ANN401
    """Return the type of a group of options: a dictionary of the given ones by the names of their fields.

    Args:
        model: Settings.
        names: Fields, in the order of the help.
        group: Heading in the help.
        changed: Field → what the command line does otherwise.
    """
    options = {name: option_of(model, name, changed.get(name)) for name in names}
    kind: Any = TypedDict("Options", options, total=False)  # type: ignore[misc]  # mypy reads literal fields only
    return Annotated[kind, Parameter(name="*", group=group)]


def _plain(kind: Any) -> Any:  # noqa: ANN401 - an annotation: a type, a union or another form
    """Return a type without None and constraints, which the settings check with better messages; text in a union."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) is tuple:
        return GenericAlias(tuple, (_plain(get_args(kind)[0]), ...))
    if get_origin(kind) not in (Union, UnionType):
        return kind
    members = [_plain(member) for member in get_args(kind) if member is not NoneType]
    return str if str in members else members[0]


def _help(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    text = _SENTENCE.split(" ".join(description(model, name).split()), maxsplit=1)[0].rstrip(".")
    text = text[0].lower() + text[1:] if text[1].islower() else text
    has_default = not field.is_required() and field.default not in (None, False, "", ())
    default = f" [default: {field.default}]" if has_default else ""
    return f"{text}{default}{f' [env: {variable_of(name)}]' if model is RunContext else ''}"


if TYPE_CHECKING:
    StoreUrl = str | None
    Place = Mapping[str, Any]
    Site = Mapping[str, Any]
    RunSite = Mapping[str, Any]
    SweepSite = Mapping[str, Any]
else:
    StoreUrl = option_of(RunContext, "store", Parameter(group=PLACE))
    _PLACE = ("store", "mirror", "device", "threads")
    Place = options_of(RunContext, _PLACE, PLACE, mirror=EXISTING)
    Site = options_of(RunContext, (*_PLACE, "cluster"), PLACE, mirror=EXISTING)
    RunSite = options_of(RunContext, (*_PLACE, "cluster", "processes"), PLACE, mirror=EXISTING)
    SweepSite = options_of(RunContext, (*_PLACE, "cluster", "pool"), PLACE, mirror=EXISTING)
"""Runtime options of one process, of a run, of a run of one recipe, and of a sweep."""

Debug = Annotated[bool, Parameter(group=OUTPUT, help="show tracebacks and Prefect's log")]


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """Options of a command's output."""

    json: Annotated[bool, Parameter(help="print only the result, as one JSON value")] = False
    debug: Debug = False


@Parameter(name="*", group=LABELLED)
@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    """Options that name the columns of the user's labels."""

    label_column: Annotated[
        str | None,
        Parameter(
            help="column with classes or scores, in files of labels [default: guessed by name: label, class, score …]"
        ),
    ] = None
    text_column: Annotated[
        tuple[str, ...],
        SEVERAL,
        Parameter(help="text column of files of labels, two for pairs [default: guessed]"),
    ] = ()

    def of_file(self, path: str | None, encoding: str | None = None) -> str | None:
        """Return the name of a file of labels with these columns; None without a file.

        Raises:
            ValueError: Columns are named without a file.
        """
        from bsl.storage.sources.label_names import with_label_columns

        if path is None:
            self._refuse_unused("--labels FILE")
            return None
        return with_label_columns(path, self.label_column, self.text_column, encoding)

    def of_sets(self, names: Sequence[str], document: str | None = None) -> tuple[str, ...]:
        """Return names of evaluation sets, with these columns in the files of labels.

        Raises:
            ValueError: Columns are named, but no set is a file of labels.
        """
        from bsl.storage.sources.label_names import SET_PREFIX, set_with_label_columns

        if not any(name.startswith(SET_PREFIX) for name in names):
            self._refuse_unused(f"--suite {SET_PREFIX}FILE", document)
        return tuple(set_with_label_columns(name, self.label_column, self.text_column, document) for name in names)

    def _refuse_unused(self, needed: str, document: str | None = None) -> None:
        for name, value in {**asdict(self), "document": document}.items():
            if value:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option}: names a column of labels, but no file of labels is given. Add {needed}")


Changes = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set", metavar="FIELD=VALUE", help="change a setting, for example training.lr=3e-4; may be repeated"
    ),
]
AskedPrecision = Annotated[
    Literal["auto", "fp32", "bf16"] | None,
    Parameter(
        help="precision of training and encoding; auto: bf16 if the device is faster in it, else fp32 "
        "[default: that of the recipe, else auto]"
    ),
]


@Parameter(name="*", group=SETTINGS)
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options that change the settings of a recipe or a command."""

    settings: Changes = ()
    precision: AskedPrecision = None

    def changes(self, sections: Iterable[str] = ()) -> dict[str, Any]:
        """Return nested changes for `bsl.flows.config.override`.

        Args:
            sections: Sections of the configuration that have a precision.

        Raises:
            ValueError: A setting of `--set` is malformed, or two settings contradict each other, or `--precision`.
        """
        places = [f"{section}.precision" for section in sections if self.precision]
        refuse_contradictions(dict.fromkeys(places, self.precision), changes_of(self.settings))
        by_precision = [f"{place}={self.precision}" for place in places]
        return changes_of([*by_precision, *self.settings])


@Parameter(name="*", group=SETTINGS)
@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(Settings):
    """Options that change the settings of an evaluation, which has no training of its own."""

    settings: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            metavar="FIELD=VALUE",
            help="change a setting, for example bootstrap.resamples=5000; may be repeated",
        ),
    ] = ()
