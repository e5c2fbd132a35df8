"""Runtime settings of a run: explicit values, then the environment, then defaults. Only this module reads BSL_*."""

from __future__ import annotations

import json
import logging
import os
import shlex
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

from pydantic import Field, ValidationError, WithJsonSchema
from pydantic_settings import BaseSettings, SettingsConfigDict

from bsl.flows.forms import Form, partial
from bsl.flows.parameters import leaves
from bsl.models.runtime import precision
from bsl.storage.filesystem.secrets import PUBLIC_PATTERN
from bsl.storage.filesystem.spelling import nearest_name
from bsl.storage.filesystem.urls import Address, Public
from bsl.storage.filesystem.values import brief
from bsl.storage.record import LARGEST, WHOLE
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.progress import announce
from bsl.tasks.stage.run_context import RunContext, variable_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel
    from pydantic.config import JsonDict
    from pydantic_core import ErrorDetails

    from bsl.models.runtime.precision import Precision


if TYPE_CHECKING:
    Site = RunContext
else:
    Site = Annotated[RunContext, Form(partial(RunContext))]  # an empty field of Prefect's form: the worker's setting


logger = logging.getLogger(__name__)

Names = Annotated[list[Public], Field(min_length=1)]  # Prefect's form and server refuse an empty list
MOST_SEEDS: Final = 1000
Seeds = Annotated[int, Field(ge=1, le=MOST_SEEDS), WHOLE]
_PREFIX: Final = "BSL_"
_CLOSE: Final = 0.7  # of `difflib`, without the prefix; `MIRROR` and `DATA_MIRROR` score 0.71, `PORT` and `POOL` 0.5
_TEXTS: Final = ("store", "mirror", "cache", "device", "cluster")
_STORABLE: Final[JsonDict] = {"minimum": -LARGEST, "maximum": LARGEST, "pattern": PUBLIC_PATTERN}
Setting = Annotated[Any, WithJsonSchema({**_STORABLE, "items": {**_STORABLE, "items": _STORABLE}})]
"""A value of any field, which Prefect's server refuses if it must not be recorded."""


class _RunContextSettings(RunContext, BaseSettings):
    """`RunContext` read from environment variables. Stages receive a plain one: a worker's environment may differ."""

    model_config = SettingsConfigDict(
        env_prefix="BSL_", env_ignore_empty=True, env_parse_none_str="none", case_sensitive=False
    )
    numbers_as_text: ClassVar[bool] = True

    # An alias is also the name of a variable, without the prefix. So it is the only name here, not `mirror` too.
    mirror: Address | None = Field(None, validation_alias=variable_of("mirror"))


def run_context_of(given: RunContext | Mapping[str, object] | None = None) -> RunContext:
    """Return the run context from a flow parameter or a command's options, completed from the environment.

    Of a run context, the fields that were set are used. Of options by field name, None means unset, and other names are
    ignored.

    Raises:
        ValueError: A value is invalid; the message names the field and its variable.
    """
    for variable in sorted(os.environ):
        _warn_if_misspelt(variable, logger.hasHandlers())
    options: Mapping[str, object]
    if isinstance(given, RunContext):  # None is a value, if the default is another
        unset = {name for name, field in RunContext.model_fields.items() if field.default is None}
        options = given.model_dump(exclude_unset=True)
    else:
        unset, options = set(RunContext.model_fields), given or {}
    explicit = {
        variable_of(name) if name == "mirror" else name: value
        for name, value in options.items()
        if name in RunContext.model_fields and (value is not None or name not in unset)
    }
    try:
        settings = _RunContextSettings.model_validate(explicit)
    except ValidationError as error:
        raise ValueError("\n".join(_explain(problem) for problem in error.errors())) from None
    context = RunContext.model_validate(settings.model_dump(exclude_unset=True))
    if given is None or isinstance(given, RunContext):  # a flow, perhaps on a worker that is about to mount the folder
        try:
            context.check_mirror()
        except ValueError as error:
            logger.warning("%s Until it exists, nothing is read from it", error)
    return context


@cache  # each once, as a process reads its environment often, and sets other variables in between
def _warn_if_misspelt(variable: str, has_log: bool) -> None:  # noqa: ARG001 - again in a log that starts later
    """Warn of a variable whose name is close to that of a setting; `BSL_STOR` would be ignored without a word."""
    name = variable.upper()
    known = {variable_of(field).removeprefix(_PREFIX) for field in RunContext.model_fields}
    ending = name.removeprefix(_PREFIX)
    if name.startswith(_PREFIX) and ending not in known and (close := nearest_name(ending, known, _CLOSE)):
        logger.warning("the environment variable %s has no effect. Did you mean %s%s?", variable, _PREFIX, close)


def _explain(problem: ErrorDetails) -> str:
    """Return the field, its variable and the reason, with a number's value: a URL may contain a password."""
    name = str(problem["loc"][0]) if problem["loc"] else ""
    name = "mirror" if name == variable_of("mirror") else name
    reason = problem["msg"].removeprefix("Value error, ")
    if name not in _TEXTS:
        reason = f"{reason} (found {brief(problem['input'])})"
    return f"{name} ({variable_of(name)}): {reason}" if name in RunContext.model_fields else reason


def command_of(
    command: str, names: Sequence[str], options: Mapping[str, str | None], changes: Mapping[str, object] | None = None
) -> str:
    """Return the `bsl` command line, quoted for a shell.

    Options of None are left out; each of the nested changes becomes a `--set`.
    """
    words = ["bsl", command, *names]
    words += [word for name, value in options.items() if value is not None for word in (f"--{name}", value)]
    for path, value in leaves(changes or {}):
        words += ["--set", f"{path}={value if isinstance(value, str) else json.dumps(value, default=str)}"]
    return shlex.join(words)


C = TypeVar("C", bound="BaseModel")


def fix_precision(config: C, site: RunContext) -> C:
    """Replace every `auto` in a configuration's precisions by the precision of this machine; idempotent.

    Stages do so themselves: only settings that are shown, or sent to another machine, need it.
    """
    return precision.with_resolved_precision(config, lambda: device_of(site))


def announce_precision(site: RunContext, precisions: Mapping[str, Precision]) -> None:
    """Announce the precision of each phase (`training`, `evaluation`) and its reason, in log and on terminal."""
    explanations = {phase: precision.explained(requested, device_of(site)) for phase, requested in precisions.items()}
    if len(set(explanations.values())) == 1:
        announce(f"precision: {next(iter(explanations.values()))}")
    elif explanations:
        announce(f"precision: {'; '.join(f'{phase} {text}' for phase, text in explanations.items())}")


def check_workers(workers: int | None, site: RunContext) -> None:
    """Refuse worker processes of this machine beside a cluster, whose workers would run the points."""
    if workers and site.cluster:
        raise ValueError(
            f"--workers {workers}: the workers of --cluster or BSL_CLUSTER run the points. Remove one of them"
        )
