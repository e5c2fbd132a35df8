"""The event that a part of a run ends with, by which the next part starts elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from prefect.events import emit_event
from prefect.runtime import deployment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.site import Site
    from tasks.stage.parts import Part

_SHARED: Final = {"store", "mirror"}  # of a site: the rest is each machine's own


def tell(part: Part, recipe_name: str, overrides: Mapping[str, Any] | None, site: Site | None) -> None:
    """Say that all artifacts up to the part's end are there, with what the next part needs to go on.

    The event is `bsl.<until>.published`; its resource's label `bsl.deployment` says which deployment it came from, so
    that a trigger goes on with runs of the chain and leaves those of a terminal alone.
    """
    assert part.until is not None
    emit_event(
        f"bsl.{part.until}.published",
        resource={
            "prefect.resource.id": f"bsl.{part.last[-1].ref.path.replace('/', '.') if part.last else part.until}",
            "bsl.deployment": str(deployment.name or ""),
            "bsl.recipe": recipe_name,
        },
        payload={
            "recipe_name": recipe_name,
            "overrides": overrides,
            "site": _shared(site) if site else None,
            "made": [step.ref.model_dump(mode="json") for step in part.steps],
        },
    )


def _shared(site: Site) -> dict[str, object]:
    """Store and mirror, if they were given, as addresses that hold in any folder; else the next worker's own count."""
    said = _SHARED & site.model_fields_set
    return site.abroad().model_dump(mode="json", include=said, exclude_unset=True)
