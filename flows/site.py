"""Runtime settings of a run: explicit values, then the environment, then defaults. Only this module reads BSL_*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from storage.address import Address
from tasks.site import Site

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails


class _SiteSettings(Site, BaseSettings):
    """The fields of a `Site`, each with a variable; stages take a `Site`, which a worker fills from no environment."""

    model_config = SettingsConfigDict(env_prefix="BSL_", env_ignore_empty=True, case_sensitive=False)

    mirror: Address | None = Field(None, validation_alias=AliasChoices("mirror", "BSL_DATA_MIRROR"))


def site_of(given: Site | Mapping[str, object] | None = None) -> Site:
    """Return the site of a flow's parameter or a command's options; the environment fills the fields without a value.

    Args:
        given: a site, of which the fields that were set count; or options, of which those with a field's name and a
            value other than None count.

    Raises:
        ValueError: a field refuses its value; the message has the field and its variable.
    """
    asked = given.model_dump(exclude_unset=True) if isinstance(given, Site) else given or {}
    explicit = {field: asked[field] for field in Site.model_fields if asked.get(field) is not None}
    try:
        settings = _SiteSettings.model_validate(explicit)
    except ValidationError as error:
        raise ValueError("\n".join(_explain(problem) for problem in error.errors())) from None
    return Site.model_validate(settings.model_dump(exclude_unset=True))


def variable_of(field: str) -> str:
    """Return the environment variable of a field of `Site`.

    Args:
        field: the name of the field.
    """
    return "BSL_DATA_MIRROR" if field == "mirror" else f"BSL_{field.upper()}"


def _explain(problem: ErrorDetails) -> str:
    """The field, its variable and the refusal, without the value: an address may have a password."""
    name = str(problem["loc"][0]) if problem["loc"] else ""
    reason = problem["msg"].removeprefix("Value error, ")
    field = "mirror" if name == "BSL_DATA_MIRROR" else name
    return f"{field} ({variable_of(field)}): {reason}" if field in Site.model_fields else reason
