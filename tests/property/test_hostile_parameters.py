"""Fuzz tests of deployment parameters: each input gives a clear error or a result."""

from prefect import Flow
from prefect.exceptions import ParameterBindError, ParameterTypeError, SignatureMismatchError
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import ValidationError, validate

from bsl.flows.config import override
from bsl.flows.evaluation import evaluation
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from tests.hostile_values import spoiled

FLOWS: dict[str, tuple[Flow[..., object], dict[str, object]]] = {
    "bsl-pipeline": (
        pipeline,
        {
            "recipe_name": "tiny",
            "overrides": {"training": {"lr": 0.1, "objective": {"name": "bsl"}}, "ingest": {"corpus": {"limit": 9}}},
            "site": {"store": "s3://bucket/store", "device": "cpu", "threads": 2, "save_minutes": 1.5},
        },
    ),
    "bsl-evaluate": (evaluation, {"models": ["embedded:bert-mini"], "suite": ["embedded:stsb/test"], "site": {}}),
}


def test_random_deployment_parameters_pass_or_raise_a_validation_error(draw, caplog):
    """Validate as the server does, by the schema that `prefect deploy` sends, and as the worker's flow does."""
    dice, counts = draw.dice, draw.counts
    caplog.set_level("CRITICAL", logger="prefect")  # Prefect logs each refused parameter
    schemas = {name: parameter_schema(flow.fn).model_dump() for name, (flow, _) in FLOWS.items()}
    for _ in draw.rounds(0.02):
        name = dice.choice(list(FLOWS))
        flow, whole = FLOWS[name]
        given = spoiled(whole, dice)
        if not isinstance(given, dict):
            continue
        try:
            validate(given, schemas[name], raise_on_error=True)
            counts["taken by the server"] += 1
        except ValidationError:
            counts["refused by the server"] += 1
        try:
            asked = flow.validate_parameters(given)
            if flow is pipeline:
                override(recipe(asked["recipe_name"]), asked.get("overrides") or {})
            counts["taken by the flow"] += 1
        except (ParameterTypeError, ParameterBindError, SignatureMismatchError, ValueError):
            counts["refused by the flow"] += 1
