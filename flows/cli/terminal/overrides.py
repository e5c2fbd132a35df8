"""Parse `--set FIELD=VALUE` and `--config FILE`: changes to a recipe or to settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bsl.flows.config import PipelineConfig

_NAMED: Final = ("objective", "transform")  # sections that a name stands for
_DEEPEST = 16  # nested sections; configurations have three levels


def configured(name: str, settings: Sequence[str]) -> PipelineConfig:
    """Return a recipe with `field=value` settings.

    Raises:
        ValueError: The recipe, a field or a value is invalid; the message suggests the closest name.
    """
    from bsl.flows.config import override
    from bsl.flows.recipes import recipe

    return override(recipe(name), changes_of(settings))


def settings_in(file: Path | None) -> dict[str, Any]:
    """Return the settings in the JSON file of `--config`; none without a file.

    Raises:
        ValueError: The file cannot be read, or is not a JSON object.
    """
    if file is None:
        return {}
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"--config {file}: {error.strerror}. Name a JSON file of settings") from error
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise ValueError(f"--config {file}: expected a JSON object of settings")  # noqa: TRY004 - exit code 2
    return settings


def changes_of(settings: Sequence[str]) -> dict[str, Any]:
    """Parse settings of `--set` into nested changes for `bsl.flows.config.override`.

    Raises:
        ValueError: A setting is malformed, or two settings give a field different values.
    """
    changes: dict[str, Any] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals or path.count(".") > _DEEPEST or "" in path.split("."):
            raise ValueError(f"--set {setting[:200]}: expected FIELD=VALUE, such as training.lr=3e-4")
        if not _put(changes, path.split("."), value_of(value)):
            parts = path.split(".")
            other = next(other for other in settings if not _put(changes_of([other]), parts, value_of(value)))
            raise ValueError(f"--set {setting} and --set {other} contradict each other. Remove one of them")
    return changes


_SPELLED: Final = {
    "encoder.model": "--encoder",
    "evaluation.sets": "--suite",
    "reading.cnn.kernels": "--cnn",
    "reading.words.marks": "--no-marks",
}
"""Path of a field → its option, if the option does not have the field's name."""


def refuse_contradictions(given: Mapping[str, object], changes: Mapping[str, Any]) -> None:
    """Refuse `--set` of a field to another value than that of the field's option.

    Args:
        given: Path of a field → value of its option; None if the option is not given.
        changes: Changes of `--set`.

    Raises:
        ValueError: An option and `--set` give a field different values.
    """
    for path, value in given.items():
        wanted = list(value) if isinstance(value, tuple) else value
        found: Any = changes
        for name in path.split("."):
            found = found.get(name, wanted) if isinstance(found, Mapping) else wanted
        if value is not None and [found] != [wanted]:  # in lists, NaN equals itself
            option = _SPELLED.get(path, f"--{path.rpartition('.')[2].replace('_', '-')}")
            raise ValueError(f"{option} and --set {path}={found} contradict each other. Remove one of them")


def _put(changes: dict[str, Any], path: list[str], value: object) -> bool:
    """Insert a value; return False if it contradicts an earlier value of the field, or of one above or below it."""
    nested: Any = value
    for name in reversed(path):
        nested = {name: nested}
    return _merge(changes, nested)


def _merge(changes: dict[str, Any], others: Mapping[str, Any]) -> bool:
    for name, value in others.items():
        if name in _NAMED and isinstance(value, str):
            value = {"name": value}
        before = changes.setdefault(name, {} if isinstance(value, dict) else value)
        both = isinstance(before, dict) and isinstance(value, dict)
        if not (_merge(before, value) if both else [before] == [value]):  # in lists, NaN equals itself
            return False
    return True


def value_of(text: str) -> object:
    """Parse a JSON value (`3e-4`, `true`, `["a"]`), also a number without its zero (`.5`); return other text as is."""
    try:
        return json.loads(text.replace(".", "0.", 1) if re.match(r"-?\.\d", text) else text)
    except RecursionError as error:
        raise ValueError(f"--set …={text[:20]}…: nested too deeply, expected a JSON value or plain text") from error
    except ValueError:  # not JSON, or a number with too many digits
        return text
