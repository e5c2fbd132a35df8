"""What a validation error of settings says: the field as `--set` names it, what was found, and the nearest names."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from bsl.storage.filesystem.secrets import shown
from bsl.storage.filesystem.spelling import did_you_mean, nearest_name
from bsl.storage.filesystem.values import MOST
from bsl.storage.record import description

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

_MOST_PATHS: Final = 3  # fields of other sections in a suggestion
_FIRST_WORDS: Final = 4  # words of a field's description that are searched for a misspelt name


def explained(error: ValidationError, base: BaseModel) -> str:
    """Return the faults of settings, one readable line for each, which suggest fields of `base`."""
    problems = error.errors()
    # A list that is too short only because its items are faulty is no fault of its own.
    inner = {problem["loc"][:-depth] for problem in problems for depth in range(1, len(problem["loc"]))}
    own = [problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in inner]
    return "\n".join(_explained(problem, base) for problem in own)


def _explained(problem: ErrorDetails, base: BaseModel) -> str:
    names, model, kinds = _located(problem, base)
    path = ".".join(names)
    if problem["type"] == "value_error" and not path:
        return str(problem["ctx"]["error"])  # a validator of the whole configuration; its message is complete
    if problem["type"] == "extra_forbidden":
        return f"{path}: unknown field{_suggestion(names, model, base)}"
    if problem["type"] == "union_tag_invalid":
        tags = problem["ctx"]["expected_tags"].replace("'", "").split(", ")
        hint = did_you_mean(problem["ctx"]["tag"], tags)
        return f"{path}.name: unknown name {problem['ctx']['tag']!r}.{hint} Expected one of {', '.join(tags)}"
    if problem["type"] == "union_tag_not_found":
        return f"{path}: has no name. Set {path}.name as well"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "string_pattern_mismatch" and model and names[-1] in model.model_fields:
        message = f"expected: {description(model, names[-1])}"
    if problem["type"] == "model_type":
        message = f"expected an object with the fields {', '.join(_fields_of(kinds, problem['ctx']['class_name']))}"
    if problem["type"] == "model_attributes_type":
        message = "expected a name, or an object with one"
    if problem["type"] == "too_short":
        message = f"expected a list of at least {problem['ctx']['min_length']}"
    if problem["type"] == "tuple_type" and isinstance(problem["input"], str | float | int):
        message = f"expected a list, for example {json.dumps([problem['input']])}"
    return f"{path}: {message} (found {_short(problem['input'])})"


def _suggestion(names: Sequence[str], model: type[BaseModel] | None, base: BaseModel) -> str:
    """Return the fields that an unknown one may mean, of another section or of its own, and the section's fields."""
    if model is None:
        return "."
    section = "".join(f"{name}." for name in names[:-1])
    elsewhere = [path for path in _paths(base) if path.endswith(f".{names[-1]}")]
    meant = elsewhere[:_MOST_PATHS] or [*filter(None, [_nearest(names[-1], model)])]
    hint = f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""
    return f".{hint} Fields{f' of {section[:-1]}' if section else ''}: {', '.join(model.model_fields)}"


def _paths(settings: BaseModel, section: str = "") -> Iterator[str]:
    """Yield the path of every field of settings and of their sections."""
    for name, value in settings:
        yield f"{section}{name}"
        if isinstance(value, BaseModel):
            yield from _paths(value, f"{section}{name}.")


def _short(value: object) -> str:
    """Return the first characters of a value on one line, without passwords."""
    try:
        text = " ".join(shown(repr(value)).split())
        return text if len(text) <= MOST else f"{text[: MOST - 2]} …"
    except ValueError:  # Python prints no number of more than 4,300 digits
        return "a number of thousands of digits"


def _fields_of(kinds: Sequence[Any], name: str) -> Sequence[str]:
    """Return the fields of the model with a name among types."""
    return next((list(kind.model_fields) for kind in kinds if getattr(kind, "__name__", "") == name), [])


def _located(problem: ErrorDetails, base: BaseModel) -> tuple[list[str], type[BaseModel] | None, list[Any]]:
    """Return the path of a field as in `--set`, the model that contains its last name, and the field's types.

    pydantic's path also contains its names for members of unions, such as that of the chosen objective.
    """
    kinds: list[Any] = [type(base)]
    names: list[str] = []
    parent: type[BaseModel] | None = None
    for number, part in enumerate(problem["loc"], 1):
        models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        holders = [model for model in models if part in model.model_fields]
        is_unknown = problem["type"] == "extra_forbidden" and number == len(problem["loc"])
        if holders or (models and is_unknown):
            parent = (holders or models)[0]
            kinds = [kind for holder in holders for kind in _kinds(holder.model_fields[str(part)].annotation)]
        elif chosen := [model for model in models if part in _tags(model)]:
            kinds = chosen
            continue
        elif isinstance(part, int) or (_has_mapping(kinds) and not part.startswith("dict[")):
            parent, kinds = None, [kind for outer in kinds for inner in get_args(outer) for kind in _kinds(inner)]
        else:
            continue
        names.append(str(part))
    return names, parent, kinds


def _kinds(annotation: Any) -> list[Any]:  # noqa: ANN401 - an annotation: a type, a union or another form
    """Return the members of a union, without their metadata."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for member in get_args(annotation) for kind in _kinds(member)]
    return [annotation]


def _tags(model: type[BaseModel]) -> tuple[object, ...]:
    """Return pydantic's names for a member of a union: that of its class, and the value of its field `name`."""
    named = model.model_fields.get("name")
    return (model.__name__, named.default if named else None)


def _has_mapping(kinds: Sequence[Any]) -> bool:
    return any(get_origin(kind) in (dict, Mapping) for kind in kinds)


def _nearest(name: str, model: type[BaseModel]) -> str:
    """Return the field that contains the name as a word, that has the closest name, or is described by it.

    For example, "steps" finds `max_steps`, and "learning_rate" finds `lr`, described as "Peak learning rate".
    """
    fields = model.model_fields
    if containing := [field for field in fields if name in field.split("_")]:
        return containing[0]
    if nearest := nearest_name(name, fields):
        return nearest
    phrases: dict[str, str] = {}
    for field in fields:
        words = description(model, field).lower().split()[:_FIRST_WORDS]
        for start, end in itertools.combinations(range(len(words) + 1), 2):
            phrases.setdefault("_".join(words[start:end]), field)
    return phrases.get(nearest_name(name, phrases, cutoff=0.8), "")
