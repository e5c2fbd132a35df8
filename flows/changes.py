"""A difference between what a server has and what it should have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from prefect.client.orchestration import SyncPrefectClient


@dataclass(frozen=True)
class Change:
    """What differs, and how it is mended.

    Attributes:
        subject: what it is about.
        found: what the server has.
        wanted: what it should have.
        make: mends it; None where a person must do what `wanted` says.
    """

    subject: str
    found: str
    wanted: str
    make: Callable[[SyncPrefectClient], object] | None = None
