"""Where a run happens, as the environment of its process says; the only place that reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from tasks.site import Site

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

_VARIABLES: Final = {
    "store": "BSL_STORE",
    "mirror": "BSL_DATA_MIRROR",
    "cache": "BSL_CACHE",
    "device": "BSL_DEVICE",
    "threads": "BSL_THREADS",
    "translator_copies": "BSL_TRANSLATOR_COPIES",
    "translator_threads": "BSL_TRANSLATOR_THREADS",
    "processes": "BSL_PROCESSES",
    "cluster": "BSL_CLUSTER",
    "save_every": "BSL_SAVE_EVERY",
}


def site_of(given: Site | Mapping[str, object] | None = None) -> Site:
    """The site that a flow's parameter or a command's options describe; the environment decides what they leave out.

    BSL_STORE, BSL_DATA_MIRROR, BSL_CACHE, BSL_DEVICE, BSL_THREADS, BSL_TRANSLATOR_COPIES, BSL_TRANSLATOR_THREADS,
    BSL_PROCESSES, BSL_CLUSTER and BSL_SAVE_EVERY are read.

    Args:
        given: a site, of which the fields that were set count; or options, of which those named as its fields count
            where they are not None.

    Raises:
        ValueError: a value is none that the field takes.
    """
    asked = given.model_dump(exclude_unset=True) if isinstance(given, Site) else given or {}
    stated = {field: asked[field] for field in Site.model_fields if asked.get(field) is not None}
    environment = {field: os.environ[variable] for field, variable in _VARIABLES.items() if os.environ.get(variable)}
    try:
        return Site.model_validate({**environment, **stated})
    except ValidationError as error:
        raise ValueError("\n".join(_explain(problem) for problem in error.errors())) from None


def _explain(problem: ErrorDetails) -> str:
    """Which variable, or option of that name, it is; its value may be an address with a password."""
    field = str(problem["loc"][0]) if problem["loc"] else ""
    said = problem["msg"].removeprefix("Value error, ")
    return f"{field} ({_VARIABLES[field]}): {said}" if field in _VARIABLES else said
