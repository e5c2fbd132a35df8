"""Every number field at its bounds and beyond: `--set`, Prefect's form and Python refuse the same values, by name."""

import json
import math
import random
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from prefect import Flow
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import preprocess_schema, validate
from pydantic import BaseModel

from bsl.flows.adaptation import adapt
from bsl.flows.cli.terminal.overrides import changes_of
from bsl.flows.config import nested, override
from bsl.flows.evaluation import evaluation
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.storage.record import LARGEST
from bsl.tasks.evaluation.config import EvaluationSettings
from bsl.tasks.stage.run_context import RunContext
from tests.differential.cases import FIRST, count
from tests.every import every

INPUTS = count(200)
RECIPES = ("tiny", "tiny-flow", "nli", "tiny-simcse", "tiny-tsdae", "isbert")


@dataclass(frozen=True)
class Field:
    """A number field."""

    base: BaseModel
    flow: Flow[..., Any]
    parameter: str
    path: str
    bounds: tuple[float, ...]
    whole: bool


def kinds_of(annotation):
    if get_origin(annotation) is Annotated:
        return kinds_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for member in get_args(annotation) for kind in kinds_of(member)]
    return [annotation]


def number_fields(settings, path=""):
    """Yield path, declared bounds and wholeness of each number field of settings and of their sections."""
    for name, field in type(settings).model_fields.items():
        value, kinds = getattr(settings, name), kinds_of(field.annotation)
        if isinstance(value, BaseModel):
            yield from number_fields(value, f"{path}{name}.")
        elif int in kinds or float in kinds:
            bounds = [getattr(part, side, None) for part in field.metadata for side in ("ge", "gt", "le", "lt")]
            yield f"{path}{name}", tuple(bound for bound in bounds if bound is not None), float not in kinds


def every_field():
    roots: list[tuple[BaseModel, Flow[..., Any], str]] = [
        (AdaptConfig(), adapt, "config"),
        (EvaluationSettings(), evaluation, "config"),
        (RunContext(), pipeline, "site"),
    ]
    roots += [(recipe(name), pipeline, "overrides") for name in RECIPES]
    found = {
        (type(base), path, bounds): Field(base, flow, parameter, path, bounds, whole)
        for base, flow, parameter in roots
        for path, bounds, whole in number_fields(base)
    }
    return list(found.values())


FIELDS = every_field()
FORMS = {flow: preprocess_schema(parameter_schema(flow.fn).model_dump()) for flow in {field.flow for field in FIELDS}}


def values_of(field, dice):
    """Return values at a field's bounds and beyond, and values that are no number in JSON or no number at all."""
    step = 1 if field.whole else 1e-9
    near = [value for bound in field.bounds for value in (bound - step, bound, bound + step)]
    huge = [LARGEST, LARGEST + 1, -LARGEST, -LARGEST - 1, 2**64, -(2**64), 10**400, -(10**400), 1e300, -1e300]
    other = [
        math.nan, math.inf, -math.inf, True, False, "", "3", "inf", "x", [], {}, [1], 0, -1, 0.5, 3.0, -0.0, 5e-324
    ]  # fmt: skip
    return [*near, *huge, *other, dice.randint(-(2**70), 2**70), dice.uniform(-10, 10)]


def refusal(action):
    """Return the message of a refusal; empty if an action accepts its input."""
    try:
        action()
    except ValueError as error:
        return str(error)
    return ""


def named(changes, base):
    """Add the name of the chosen objective or transform to changes of its fields, as the form does."""
    chosen = {"name": base.name} if hasattr(base, "name") else {}
    inner = {
        name: named(value, getattr(base, name)) if isinstance(value, dict) and value else value
        for name, value in changes.items()
    }
    return chosen | inner


def is_named(message, path):
    """Return whether each line of a refusal names a field: by its path, or by its section's path and its name."""
    places = [line.partition(": ") for line in message.splitlines()]
    return all(place == path or (path.startswith(place) and path.rpartition(".")[2] in why) for place, _, why in places)


def by_form(field, value):
    """Return the refusal of Prefect's server, which knows only the schema; JSON has no NaN and no infinity."""
    settings = named(nested(field.path, value), field.base)
    needed = {"recipe_name": "tiny", "texts": ["a"], "models": ["a"], "suite": ["a"]}
    given = {name: needed[name] for name in FORMS[field.flow]["required"]} | {field.parameter: settings}
    return refusal(lambda: json.dumps(value, allow_nan=False)) or "; ".join(
        map(str, validate(given, FORMS[field.flow], preprocess=False))
    )


def check(field, value):
    text = json.dumps(value)
    by_set = refusal(lambda: override(field.base, changes_of([f"{field.path}={text}"])))
    by_python = refusal(lambda: override(field.base, nested(field.path, value)))
    given = f"{field.path}={text[:60]}"
    assert bool(by_set) == bool(by_python), (given, by_set, by_python)
    for message in filter(None, (by_set, by_python)):
        assert is_named(message, field.path), (given, message)
    form = by_form(field, value)
    # A rule about several fields is no part of a schema; its message says what was found.
    assert bool(form) == bool(by_set) or ("Input should" not in by_set and not form), (given, by_set, form)


@pytest.mark.differential
def test_set_form_and_python_refuse_the_same_numbers_by_name():
    dice = random.Random(7 + FIRST)
    inputs = [(field, value) for field in FIELDS for value in values_of(field, dice)]
    for field, value in dice.sample(inputs, min(INPUTS, len(inputs))):
        check(field, value)


def test_every_number_field_refuses_what_no_database_can_hold():
    assert len(FIELDS) > 100
    for field in FIELDS:
        for value in (2**63, -(2**63), math.nan, math.inf) if field.whole else (10**400, math.nan, math.inf):
            message = refusal(lambda field=field, value=value: override(field.base, nested(field.path, value)))
            assert message.startswith(f"{field.path}: Input should be"), (field.path, value, message)


@every(
    [
        ("tiny", "training.lr=true", "training.lr: Input should be a number, not true or false (found True)"),
        ("tiny", 'training.epochs="3"', "training.epochs: Input should be a number, not text (found '3')"),
        ("tiny", 'augment.rewritings=[{"name":"crop","least":-1}]', "augment.rewritings.0.least: Input should"),
        ("tiny", "encoder.cnn.kernels=[1,9e99]", "encoder.cnn.kernels.1: Input should be less than"),
    ]
)
def test_refusal_names_the_field_as_set_takes_it(name, setting, expected):
    assert refusal(lambda: override(recipe(name), changes_of([setting]))).startswith(expected)
