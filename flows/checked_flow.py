"""Flows that check their parameters before Prefect creates a run, because a created run has recorded them.

The server checks the parameters of a deployment's run by the same types, as a JSON schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from uuid import UUID

from prefect import Flow
from prefect.runtime import flow_run
from prefect.utilities.callables import get_call_parameters

from bsl.flows.parameters import check_numbers, check_texts
from bsl.storage.filesystem.control_characters import visible

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


class CheckedFlow(Flow[P, R]):
    """A flow that refuses invalid parameters before it creates a run."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Prefect's overloads
        """Run the flow.

        Raises:
            ValueError: A number is too large or not finite, or a text contains a password or token.
            ParameterTypeError: A parameter has the wrong type or is out of bounds.
        """
        given = {name: value for name, value in kwargs.items() if name not in ("return_state", "wait_for")}
        parameters = get_call_parameters(self.fn, args, given)
        check_texts(parameters)
        check_numbers(parameters)
        self.validate_parameters(parameters)
        return super().__call__(*args, **kwargs)


def flow(name: str, flow_run_name: str | Callable[[], str]) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """Return a decorator that makes a `CheckedFlow`; in a run name from a function, control characters are escaped."""
    run_name = flow_run_name if isinstance(flow_run_name, str) else lambda: visible(flow_run_name())
    return lambda function: CheckedFlow(function, name=name, flow_run_name=run_name)


def run_prefix() -> str:
    """Return the beginning of this run's id, which names the run also to `bsl compare`.

    The ids of scheduled runs begin with the time at which the server planned them, many at once. The two groups after
    it have 26 random bits; the first alone, with 12, is often the same for two of 100 runs.
    """
    run = str(flow_run.id)
    return run[:23] if UUID(run).version == 7 else run[:8]
