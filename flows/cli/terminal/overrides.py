"""`--set FIELD=VALUE`: a person's changes to a recipe or to settings, with errors that name the nearest field."""

from __future__ import annotations

import difflib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from storage.filesystem.urls import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.config import PipelineConfig

C = TypeVar("C", bound=BaseModel)
_DEEPEST = 16  # sections within sections; configurations have three


def configured(name: str, settings: list[str]) -> PipelineConfig:
    """A recipe with `field=value` settings.

    Raises:
        ValueError: the recipe, a field or a value is not known; the nearest name is offered.
    """
    from flows.config import override
    from flows.recipes import recipe

    base, changes = recipe(name), changes_of(settings)
    with explaining(base):
        return override(base, changes)


def changed(base: C, settings: list[str]) -> C:
    """Any configuration with `field=value` settings.

    Raises:
        ValueError: a field or a value is not known; the nearest name is offered.
    """
    return checked(base, changes_of(settings))


def checked(base: C, changes: dict[str, Any]) -> C:
    """Any configuration with nested changes.

    Raises:
        ValueError: as `changed`.
    """
    from flows.config import overridden

    with explaining(base):
        return overridden(base, changes)


@contextmanager
def explaining(base: BaseModel) -> Iterator[None]:
    """Say of a value that a configuration refuses which field it is, what was found, and the nearest name.

    Args:
        base: a configuration of that kind, whose fields are offered.

    Raises:
        ValueError: a value was refused.
    """
    try:
        yield
    except ValidationError as error:
        raise ValueError("\n".join(_explain(problem, base) for problem in error.errors())) from error


def changes_of(settings: list[str]) -> dict[str, Any]:
    """Nested changes, as `flows.config.override` takes them.

    Raises:
        ValueError: a setting has another form, or two contradict each other.
    """
    changes: dict[str, Any] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals or path.count(".") > _DEEPEST:
            raise ValueError(f"--set {setting[:200]}: expected FIELD=VALUE, such as training.lr=3e-4")
        if not _put(changes, path.split("."), value_of(value)):
            other = next(other for other in settings if other != setting and _nested(path, other.partition("=")[0]))
            raise ValueError(f"--set {setting} and --set {other} contradict each other; leave one of them out")
    return changes


def _put(changes: dict[str, Any], path: list[str], value: object) -> bool:
    """Whether the value has its place: none is above or below a plain value that was set before."""
    *parents, last = path
    for name in parents:
        changes = changes.setdefault(name, {})
        if not isinstance(changes, dict):
            return False
    if last in {"objective", "transform"} and isinstance(value, str):
        value = {"name": value}  # its name alone chooses one, whose fields may be set too
    before = changes.get(last)
    if isinstance(before, dict) and not isinstance(value, dict):
        return False
    changes[last] = before | value if isinstance(before, dict) and isinstance(value, dict) else value
    return True


def _nested(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def value_of(text: str) -> object:
    """A JSON value (`3e-4`, `true`, `["a"]`), or the text itself."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"--set …={text[:20]}…: nested too deeply; expected a JSON value or plain text") from error
    except ValueError:  # no JSON, or a number of too many digits
        return text


def _explain(problem: Any, base: BaseModel) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    from models.objectives.config import OBJECTIVE_CONFIGS

    # pydantic's location has the name of the chosen objective between the section and its field.
    place = ".".join(str(part) for part in problem["loc"] if part not in OBJECTIVE_CONFIGS)
    if problem["type"] == "value_error" and not place:
        return str(problem["ctx"]["error"])  # of the configuration as a whole, which says itself what it found
    if problem["type"] != "extra_forbidden":
        return f"{place}: {problem['msg']} (found {shown(repr(problem['input']))[:200]})"
    model: object = base
    for part in problem["loc"][:-1]:
        model = OBJECTIVE_CONFIGS[part]() if part in OBJECTIVE_CONFIGS else _section(model, str(part))
    fields = list(type(model).model_fields) if isinstance(model, BaseModel) else []
    nearest = difflib.get_close_matches(str(problem["loc"][-1]), fields, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    listed = f"{'' if hint else '.'} Fields here: {', '.join(fields)}" if fields else ""
    return f"{place}: no such field{hint}{listed}"


def _section(model: object, name: str) -> object:
    """What a configuration has by that name; of a section that is not set, one of its kind."""
    found = getattr(model, name, model)
    if found is not None or not isinstance(model, BaseModel):
        return found
    kinds = get_args(type(model).model_fields[name].annotation)
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return sections[0].model_construct() if len(sections) == 1 else None
