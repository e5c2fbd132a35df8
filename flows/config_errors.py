"""Errors of configurations in words: the field, what was found, and the nearest name."""

from __future__ import annotations

import difflib
import itertools
from typing import TYPE_CHECKING, Final, get_args

from pydantic import BaseModel

from models.objectives.config import OBJECTIVE_CONFIGS
from storage.filesystem.urls import shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_FIRST_WORDS: Final = 4  # of a field's description


def explain(problem: ErrorDetails, base: BaseModel) -> str:
    """Return a line for people.

    Args:
        problem: What pydantic found.
        base: A configuration of that kind, whose fields are offered.
    """
    # pydantic's location has the name of the chosen objective between the section and its field.
    place = ".".join(str(part) for part in problem["loc"] if part not in OBJECTIVE_CONFIGS)
    if problem["type"] == "value_error" and not place:
        return str(problem["ctx"]["error"])  # of the configuration as a whole, which says itself what it found
    if problem["type"] != "extra_forbidden":
        return f"{place}: {problem['msg']} (found {shown(repr(problem['input']))[:200]})"
    model: object = base
    for part in problem["loc"][:-1]:
        model = OBJECTIVE_CONFIGS[str(part)]() if part in OBJECTIVE_CONFIGS else _section(model, str(part))
    fields = list(type(model).model_fields) if isinstance(model, BaseModel) else []
    nearest = _nearest(str(problem["loc"][-1]), type(model)) if isinstance(model, BaseModel) else None
    hint = f"; did you mean {nearest!r}?" if nearest else ""
    listed = f"{'' if hint else '.'} Fields here: {', '.join(fields)}" if fields else ""
    return f"{place}: no such field{hint}{listed}"


def _nearest(name: str, model: type[BaseModel]) -> str | None:
    """The field of the nearest name, else the one whose description has it first: `lr` is the "Peak learning rate"."""
    fields = model.model_fields
    if near := difflib.get_close_matches(name, fields, n=1):
        return near[0]
    phrases: dict[str, str] = {}
    for field, info in fields.items():
        words = (info.description or "").lower().split()[:_FIRST_WORDS]
        for start, end in itertools.combinations(range(len(words) + 1), 2):
            phrases.setdefault("_".join(words[start:end]), field)
    near = difflib.get_close_matches(name, phrases, n=1, cutoff=0.8)
    return phrases[near[0]] if near else None


def _section(model: object, name: str) -> object:
    """What a configuration has by that name; of a section that is not set, one of its kind."""
    found = getattr(model, name, model)
    if found is not None or not isinstance(model, BaseModel):
        return found
    kinds = get_args(type(model).model_fields[name].annotation)
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return sections[0].model_construct() if len(sections) == 1 else None
