"""The base class of all records and settings; bounds of numbers; removed and added fields, and fields outside keys."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError, core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

LARGEST: Final = 2**63 - 1
"""Largest whole number of databases, Arrow and torch; Prefect's server cannot list a run with a larger one."""


def _number(value: object) -> object:
    """Refuse true, false and text, which pydantic would convert to a number, and Prefect's form would not."""
    if isinstance(value, bool | str | bytes):
        kind = "true or false" if isinstance(value, bool) else "text"
        raise PydanticCustomError("number_type", "Input should be a number, not {kind}", {"kind": kind})
    return value


def _whole(value: object) -> object:
    """Refuse as `_number`, and convert 1e3; pydantic's message on 1e30 would not name the bound."""
    number = _number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


WHOLE: Final = BeforeValidator(_whole)
"""Annotation of a whole number outside a record, such as a flow's parameter."""
FINITE: Final = BeforeValidator(_number)
"""Annotation of any other number outside a record."""


def _bounded(schema: Any, record: type[Record]) -> Any:  # noqa: ANN401 - a part of a core schema
    """Return a record's schema in which every number is finite and at most `LARGEST`, and its JSON schema says so."""
    if isinstance(schema, list | tuple):
        return type(schema)(_bounded(part, record) for part in schema)
    if not isinstance(schema, dict) or _is_bounded(schema, record):
        return schema
    largest = {"int": LARGEST, "float": sys.float_info.max}.get(schema.get("type", ""))
    if largest is None:
        return {name: part if name == "metadata" else _bounded(part, record) for name, part in schema.items()}
    number: Any = dict(schema)
    number |= {} if "ge" in number or "gt" in number else {"ge": -largest}
    number |= {} if "le" in number or "lt" in number else {"le": largest}
    number |= {"allow_inf_nan": False} if number["type"] == "float" else {}
    if record.numbers_as_text:
        return number
    return core_schema.no_info_before_validator_function(_whole if number["type"] == "int" else _number, number)


def _is_bounded(schema: Mapping[str, Any], record: type[Record]) -> bool:
    """Return whether a part of a schema is another record, or a number with bounds."""
    if schema.get("type") == "model":
        return schema["cls"] is not record and issubclass(schema["cls"], Record)
    function = schema.get("function")
    return isinstance(function, dict) and function.get("function") in (_number, _whole)


def _title(name: str, _: object) -> str:
    """Return the title of a field, such as `Max Length`."""
    return name.replace("_", " ").title()


class Record(BaseModel):
    """A frozen model that refuses unknown fields; a field's docstring is its description.

    Every number is finite, at most `LARGEST`, and not given as text.
    """

    # In Prefect's form a field without a title is called `Field`; by default pydantic titles no field that is a record.
    model_config = ConfigDict(frozen=True, extra="forbid", field_title_generator=_title)

    removed: ClassVar[Mapping[str, object]] = {}
    """Removed fields with their last defaults: artifact keys still contain them, so that removing a field keeps all
    keys of its default."""
    numbers_as_text: ClassVar[bool] = False
    """Whether numbers may also be text, as in environment variables."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:  # noqa: ANN401
        """Return pydantic's schema with bounds on all numbers, so that no field can lack them."""
        bounded: core_schema.CoreSchema = _bounded(handler(source), cls)
        return bounded

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return pydantic's JSON schema with the descriptions of the fields."""
        made = handler(schema)
        properties = handler.resolve_ref_schema(made).get("properties", {})
        for name in cls.model_fields.keys() & properties.keys():
            if text := description(cls, name):
                properties[name]["description"] = text
        return made


def description(model: type[BaseModel], name: str) -> str:
    """Return the description of a field: its own, else the docstring below it; empty if it has neither.

    Docstrings are read when they are asked for: pydantic's `use_attribute_docstrings` reads all of them when the
    classes are made, a third of the time to a command's help.
    """
    if own := model.model_fields[name].description:
        return own
    declared = next(base for base in model.__mro__ if name in inspect.get_annotations(base))
    return _docstrings(declared.__module__).get(declared.__name__, {}).get(name, "")


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return class → field → the docstring below it, for the classes of a module; none if it has no source."""
    try:
        source = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    classes = [node for node in ast.walk(source) if isinstance(node, ast.ClassDef)]
    return {node.name: dict(_documented(node.body)) for node in classes}


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield name and docstring of the fields among the statements of a class."""
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                yield name, inspect.cleandoc(docstring)


class NotInKey:
    """Mark a field that cannot change the result, such as a path or a device: `location: Annotated[str, NotInKey]`."""


class AddedAs:
    """Mark a field added after a release: `size: Annotated[int, AddedAs(0)] = 0`.

    At this value, its first default, the field is not in artifact keys, so that adding it keeps all keys.
    """

    def __init__(self, value: object) -> None:
        self.value = value


def named(value: object) -> object:
    """Convert a kind's bare name to its default settings; a `BeforeValidator` of sections selected by `name`."""
    return {"name": value} if isinstance(value, str) else value
