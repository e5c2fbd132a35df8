"""What `mirror.json` says of a mirror's files: where each came from, and its sha256."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from storage.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

RECORD: Final = "mirror.json"


class MirroredFile(BaseModel):
    """What is known of one file of a mirror."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origin: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


_ENTRIES: Final = TypeAdapter(dict[str, MirroredFile])


def read_record(mirror: Path) -> dict[str, MirroredFile]:
    """The entries of a mirror by relative path; none if it was filled by hand.

    Raises:
        SourceError: there is a `mirror.json` that is no such record.
    """
    path = mirror / RECORD
    try:
        return _ENTRIES.validate_json(path.read_bytes()) if path.is_file() else {}
    except ValidationError as error:
        raise SourceError(
            f"{path} is no record of a mirror ({str(error).splitlines()[0]}); restore or delete it"
        ) from error


def model_origin(mirror: Path, hub_id: str) -> str | None:
    """Where a mirror's model came from, as `<hub id>@<commit>` if from the Hub; None if the record does not say."""
    inside = f"models/{hub_id}/"
    return next((entry.origin for name, entry in read_record(mirror).items() if name.startswith(inside)), None)
