"""What can go wrong with bytes and paths.

    StorageError
    ├── SourceError            a raw source is missing, malformed or not what its declaration says
    ├── ArtifactMissingError   no artifact of that kind and key (no manifest, no artifact)
    ├── CorruptArtifactError   a file is absent, or its bytes are not those that were published
    ├── NewerFormatError       the manifest was written by a newer version of this program
    ├── SchemaError            a table's columns are not those of its declaration
    ├── StoreReadError         the store refuses to be read, or is out of reach
    ├── StoreWriteError        the store is read-only, full or out of reach
    └── AssetError             an embedded asset is unknown or damaged

Each takes one finished sentence that says what was found, what was expected and what to do next.
"""

from __future__ import annotations


class StorageError(Exception):
    """Anything this package raises on purpose."""


class SourceError(StorageError):
    """A raw source is missing, malformed or not what its declaration says."""


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
