"""Runtime settings of a run: explicit values, then the environment, then defaults. Only this module reads BSL_*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from storage.filesystem.urls import Address
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails


class _RunContextSettings(RunContext, BaseSettings):
    """A `RunContext` whose fields have variables; stages take the plain one, as a worker has another environment."""

    model_config = SettingsConfigDict(env_prefix="BSL_", env_ignore_empty=True, case_sensitive=False)

    mirror: Address | None = Field(None, validation_alias=AliasChoices("mirror", "BSL_DATA_MIRROR"))


def run_context_of(given: RunContext | Mapping[str, object] | None = None) -> RunContext:
    """Return the site of a flow's parameter or a command's options; the environment fills the fields without a value.

    Args:
        given: a site, of which the fields that were set count; or options, of which those with a field's name and a
            value other than None count.

    Raises:
        ValueError: a field refuses its value; the message has the field and its variable.
    """
    asked = given.model_dump(exclude_unset=True) if isinstance(given, RunContext) else given or {}
    explicit = {field: asked[field] for field in RunContext.model_fields if asked.get(field) is not None}
    try:
        settings = _RunContextSettings.model_validate(explicit)
    except ValidationError as error:
        raise ValueError("\n".join(_explain(problem) for problem in error.errors())) from None
    return RunContext.model_validate(settings.model_dump(exclude_unset=True))


def variable_of(field: str) -> str:
    """Return the environment variable of a field of `RunContext`.

    Args:
        field: the name of the field.
    """
    return "BSL_DATA_MIRROR" if field == "mirror" else f"BSL_{field.upper()}"


def _explain(problem: ErrorDetails) -> str:
    """The field, its variable and the refusal, without the value: an address may have a password."""
    name = str(problem["loc"][0]) if problem["loc"] else ""
    reason = problem["msg"].removeprefix("Value error, ")
    field = "mirror" if name == "BSL_DATA_MIRROR" else name
    return f"{field} ({variable_of(field)}): {reason}" if field in RunContext.model_fields else reason
