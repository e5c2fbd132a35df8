"""Errors of bytes and paths; each takes a sentence with what was found, what was expected and what to do next."""

from __future__ import annotations


class StorageError(Exception):
    """Anything this package raises on purpose."""


class SourceError(StorageError):
    """A raw source is missing, malformed or not what its declaration says.

    Attributes:
        finding: What was found and expected, without `remedy`.
        remedy: What to do, where many sources share it and a table says it once.
    """

    def __init__(self, finding: str, remedy: str = "") -> None:
        super().__init__(f"{finding}; {remedy}" if remedy else finding)
        self.finding, self.remedy = finding, remedy


class HubError(SourceError):
    """The Hub should have it and did not give it; a run that went on without it would have another result."""


class HubSilentError(HubError):
    """The Hub did not answer, or only with faults of its own; what the cache has of it may do.

    Attributes:
        wait: Seconds that the Hub asks to wait.
    """

    def __init__(self, finding: str, remedy: str = "", wait: float = 0.0) -> None:
        super().__init__(finding, remedy)
        self.wait = wait


class ArtifactMissingError(StorageError):
    """No artifact of that kind and key."""


class CorruptArtifactError(StorageError):
    """A file of an artifact is absent or changed."""


class NewerFormatError(StorageError):
    """The manifest was written by a newer version of this program."""


class SchemaError(StorageError):
    """A table's columns are not those of its declaration."""


class StoreReadError(StorageError):
    """The store refuses to be read, or is out of reach."""


class StoreWriteError(StorageError):
    """The store is read-only, full or out of reach."""


class AssetError(StorageError):
    """An embedded asset is unknown or damaged."""
