"""Errors of the storage package; each message names what was found, what was expected and the remedy."""

from __future__ import annotations


class StorageError(Exception):
    """Base of all errors that this package raises on purpose."""


class SourceError(StorageError):
    """A raw source is missing, malformed or different from its declaration.

    Attributes:
        finding: What was found and expected, without `remedy`.
        remedy: How to fix it, without capital and period. A table prints a remedy that many sources share once.
    """

    def __init__(self, finding: str, remedy: str = "") -> None:
        super().__init__(f"{finding}. {remedy[0].upper()}{remedy[1:]}." if remedy else finding)
        self.finding, self.remedy = finding, remedy


class HubError(SourceError):
    """The Hub should have the files but did not deliver them; continuing without them would change the result."""


class HubSilentError(HubError):
    """The Hub did not answer, or only with server errors; its cached files may be used instead.

    Attributes:
        wait: Seconds that the Hub asks to wait.
    """

    def __init__(self, finding: str, remedy: str = "", wait: float = 0.0) -> None:
        super().__init__(finding, remedy)
        self.wait = wait


class ArtifactMissingError(StorageError):
    """No artifact of that kind and key."""


class ArtifactInUseError(StorageError):
    """A running process uses an artifact that would be deleted."""


class CorruptArtifactError(StorageError):
    """A file of an artifact is absent or changed."""


class StaleArtifactError(CorruptArtifactError):
    """An input of an artifact was made again with other content."""


class NewerFormatError(StorageError):
    """The manifest was written by a newer version of this program."""


class SchemaError(StorageError):
    """A table's columns differ from its declaration."""


class StoreReadError(StorageError):
    """The store cannot be read or reached."""


class StoreWriteError(StorageError):
    """The store is read-only, full or cannot be reached."""


class AssetError(StorageError):
    """An embedded asset is unknown or damaged."""
