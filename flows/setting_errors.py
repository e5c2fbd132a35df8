"""Messages of validation errors of settings: the field as `--set` names it, what was found, and the nearest names."""

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
_CLOSE: Final = 0.8  # similarity, as of `difflib`, of a section's name and of a name in another section
_FIRST_WORDS: Final = 4  # words of a field's description that are searched for a misspelt name


def explained(error: ValidationError, base: BaseModel, given: Mapping[str, Any]) -> str:
    """Return the faults of given settings, one readable line for each, which suggest fields of `base`.

    A section of `base` that the given settings replace by another, such as another objective, is not suggested.
    """
    problems = error.errors()
    # A list that is too short only because its items are faulty is no fault of its own.
    inner = {problem["loc"][:-depth] for problem in problems for depth in range(1, len(problem["loc"]))}
    own = [problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in inner]
    return "\n".join(_explained(problem, base, given) for problem in own)


def _explained(problem: ErrorDetails, base: BaseModel, given: Mapping[str, Any]) -> str:
    names, model, kinds = _located(problem, base)
    path, value, context = ".".join(names), problem["input"], problem.get("ctx", {})
    message = problem["msg"].removeprefix("Value error, ")
    match problem["type"]:
        case "value_error" if not path:
            return str(context["error"])  # a validator of the whole configuration; its message is complete
        case "extra_forbidden":
            return _unknown(names, value, model, list(_sections(base, given)))
        case "union_tag_invalid":
            tags = context["expected_tags"].replace("'", "").split(", ")
            hint = did_you_mean(context["tag"], tags)
            return f"{path}.name: unknown name {context['tag']!r}.{hint} Expected one of {', '.join(tags)}"
        case "union_tag_not_found":
            known = [kind.model_fields["name"].default for kind in kinds if hasattr(kind, "model_fields")]
            return f"{path}: has no name. Add one of {', '.join(known)}, as in {json.dumps({'name': known[0]})}"
        case "string_pattern_mismatch" if model and names[-1] in model.model_fields:
            message = f"expected: {description(model, names[-1])}"
        case "model_type":
            message = f"expected an object with the fields {', '.join(_fields_of(kinds, context['class_name']))}"
        case "model_attributes_type":
            message = "expected a name, or an object with one"
        case "too_short":
            message = "expected a list that is not empty"
        case "tuple_type":
            example = f", for example {json.dumps([value])}" if isinstance(value, str | int | float) else ""
            message = f"expected a list{example}"
    return f"{path}: {message} (found {_short(value)})"


def _unknown(
    names: list[str], value: object, model: type[BaseModel] | None, sections: Sequence[tuple[str, type[BaseModel]]]
) -> str:
    """Return the message of an unknown field: the fields that it may mean, and those of its section."""
    section = "".join(f"{name}." for name in names[:-1])
    typed = [*names]
    while isinstance(value, Mapping) and len(value) == 1:  # a field of an unknown section
        ((name, value),) = value.items()
        typed.append(str(name))
    inner = typed[len(names) :]
    if inner and model and (nearest := nearest_name(names[-1], model.model_fields, _CLOSE)):
        meant = [".".join([*names[:-1], nearest, *inner])]
    else:
        meant = _meant(typed[-1], section, None if inner else model, sections)
    hint = f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""
    fields = f" Fields{f' of {section[:-1]}' if section else ''}: {', '.join(model.model_fields)}" if model else ""
    return f"{'.'.join(typed)}: unknown field.{hint}{fields}"


def _meant(
    name: str, section: str, model: type[BaseModel] | None, sections: Sequence[tuple[str, type[BaseModel]]]
) -> list[str]:
    """Return the paths that an unknown name may mean: equal ones, else a near one of its section.

    A name without a section may also mean a near one of any section.
    """
    if equal := [f"{path}{name}" for path, kind in sections if name in kind.model_fields]:
        return equal[:_MOST_PATHS]
    if model and (nearest := _nearest(name, model)):
        return [f"{section}{nearest}"]
    near = [f"{path}{nearest}" for path, kind in sections if (nearest := _nearest(name, kind, _CLOSE))]
    return [] if section else near[:_MOST_PATHS]


def _sections(base: BaseModel, given: object, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield settings and their sections that stay the same kind: the start of the paths of their fields, and class."""
    changes = given if isinstance(given, Mapping) else {}
    name = getattr(base, "name", None)
    if name is not None and changes.get("name", name) != name:
        return
    yield path, type(base)
    for field, value in base:
        if isinstance(value, BaseModel):
            yield from _sections(value, changes.get(field), f"{path}{field}.")


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


def _nearest(name: str, model: type[BaseModel], cutoff: float = 0.6) -> str:
    """Return the field that contains the name as a word, that has the closest name, or is described by it.

    For example, "steps" finds `max_steps`, and "learning_rate" finds `lr`, described as "Peak learning rate".
    """
    fields = model.model_fields
    if containing := [field for field in fields if name in field.split("_")]:
        return containing[0]
    if nearest := nearest_name(name, fields, cutoff):
        return nearest
    phrases: dict[str, str] = {}
    for field in fields:
        words = description(model, field).lower().split()[:_FIRST_WORDS]
        for start, end in itertools.combinations(range(len(words) + 1), 2):
            phrases.setdefault("_".join(words[start:end]), field)
    return phrases.get(nearest_name(name, phrases, cutoff=0.8), "")
