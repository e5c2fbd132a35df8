"""Runtime settings of a run: explicit values, then the environment, then defaults. Only this module reads BSL_*."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, TypeVar

from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from models.runtime import precision
from storage.filesystem.urls import Address
from tasks.stage.device import device_of
from tasks.stage.progress import announce
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from models.runtime.precision import Computed, Precision


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


def command_of(verb: str, names: Sequence[str], options: Mapping[str, str | None], changes: Sequence[str] = ()) -> str:
    """The command.

    Args:
        verb: of `bsl`.
        names: what follows it: a recipe, or files.
        options: name → value; None for those that were not given.
        changes: `field=value` of settings that have no option of their own.
    """
    words = ["bsl", verb, *names]
    words += [word for name, value in options.items() if value is not None for word in (f"--{name}", value)]
    return shlex.join([*words, *(word for change in changes for word in ("--set", change))])


C = TypeVar("C", bound="BaseModel")


def settled(config: C, site: RunContext) -> C:
    """The configuration with every `auto` precision as this machine computes it; idempotent."""
    return precision.settled(config, lambda: device_of(site))


def computed(asked: Precision, site: RunContext) -> Computed:
    """A precision as this machine computes it."""
    return asked if asked != "auto" else precision.computed(asked, device_of(site))


def tell_precision(site: RunContext, asked: Mapping[str, Precision]) -> None:
    """Say in the log and on the terminal what a run computes in, and why.

    Args:
        site: where it runs.
        asked: what for (`training`, `evaluation`) → its precision as configured.
    """
    if not asked:
        return
    said = {name: precision.explained(own, device_of(site)) for name, own in asked.items()}
    alike = len(set(said.values())) == 1
    line = "precision: " + (next(iter(said.values())) if alike else "; ".join(f"{n} {own}" for n, own in said.items()))
    announce(line)
