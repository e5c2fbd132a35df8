"""Which modules a sentence-transformers folder puts a plain text through, where it chooses among several ways."""

from __future__ import annotations

import ast
import logging
import re
from typing import TYPE_CHECKING, Any, Final

from models.encoder.files import read_json
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

_ROUTER: Final = re.compile(r"sentence_transformers\..*\.Router")
_SETTINGS: Final = "router_config.json"
_TEXT: Final = "text"


def followed(listed: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[Mapping[str, Any]]:
    """The entries of `modules.json`; in place of a Router, the modules of the way that `encode` takes without a task.

    Raises:
        EncoderError: A Router has no way for a text of which nothing else is known.
    """
    for entry in listed:
        if not _ROUTER.fullmatch(str(entry["type"])):
            yield entry
            continue
        place = folder / entry["path"]
        settings = read_json(place / _SETTINGS)
        route = _route(settings, place)
        logger.info("%s: of the ways %s that of %s is taken", place, ", ".join(settings["structure"]), route)
        for name in settings["structure"][route]:
            yield {"type": settings["types"][name], "path": f"{entry['path'] or '.'}/{name}"}


def _route(settings: Mapping[str, Any], place: Path) -> str:
    """As sentence-transformers' Router resolves a text without a task."""
    ways, asked = settings["structure"], settings.get("parameters") or {}
    mapped = {ast.literal_eval(key): route for key, route in (asked.get("route_mappings") or {}).items()}
    usual = asked.get("default_route") or (next(iter(ways)) if asked.get("allow_empty_key", True) else None)
    candidates = [mapped.get((None, _TEXT)), mapped.get((None, None)), _TEXT if _TEXT in ways else None, usual]
    found = next((route for route in candidates if route is not None), None)
    if found not in ways:
        raise EncoderError(
            f"{place}: chooses among {', '.join(ways)} by a task, and has no way for a text without one; give the "
            "folder of one of them, or set its default_route"
        )
    return str(found)
