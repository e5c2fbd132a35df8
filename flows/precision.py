"""A configuration as this machine computes it, and the line of a run that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from models import precision
from tasks.stage.device import device_of
from tasks.stage.progress import announce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from models.precision import Computed, Precision
    from tasks.stage.run_context import RunContext


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
