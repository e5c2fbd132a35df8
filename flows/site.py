"""Where a run happens, as the environment of its process says; the only place that reads it."""

import os
from typing import Any, Final

from tasks.site import Site

_VARIABLES: Final = {
    "store": "BSL_STORE",
    "mirror": "BSL_DATA_MIRROR",
    "cache": "BSL_CACHE",
    "device": "BSL_DEVICE",
    "processes": "BSL_PROCESSES",
}


def site_from_environment(**given: Any) -> Site:  # noqa: ANN401 - the fields of Site, which checks them
    """The site that `given` describes; the environment decides what is not given.

    BSL_STORE, BSL_DATA_MIRROR, BSL_CACHE, BSL_DEVICE and BSL_PROCESSES are read.

    Args:
        given: fields of `Site`; those that are None or missing come from the environment.
    """
    found = {field: os.environ.get(variable) for field, variable in _VARIABLES.items()}
    found |= {field: value for field, value in given.items() if value is not None}
    return Site.model_validate({field: value for field, value in found.items() if value})
