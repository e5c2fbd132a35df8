"""List the files below a folder at any fsspec address; a folder that cannot be listed is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsspec.asyn import AsyncFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    import fsspec


def files_below(fs: fsspec.AbstractFileSystem, folder: str) -> Iterator[str]:
    """Yield the files below a folder, except hidden files and the contents of hidden folders.

    fsspec's own `walk` and `find` silently skip subfolders that cannot be listed. Links to folders are not followed.
    The folder's path has no slash at the end.

    Raises:
        OSError: a folder cannot be listed; an object store's client may raise other errors.
    """
    if lists_flat(fs):
        # A flat listing: one request returns a thousand names, across folders.
        yield from (name for name in map(str, fs.find(folder)) if not is_hidden(name[len(folder) :]))
        return
    for entry in fs.ls(folder or "/", detail=True):
        name = str(entry["name"]).rstrip("/")
        if name == folder or is_hidden(name[len(folder) :]):  # a client may list the folder itself
            continue
        if entry["type"] != "directory":
            yield name
        else:
            yield from files_below(fs, name)


def lists_flat(fs: fsspec.AbstractFileSystem) -> bool:
    """Return whether a file system lists all files below a folder by few requests; False if fsspec does not show it."""
    walks = getattr(AsyncFileSystem, "_find", None)
    return walks is not None and getattr(type(fs), "_find", walks) is not walks


def is_hidden(path: str) -> bool:
    """Return whether a part of a relative path begins with "."."""
    return "/." in f"/{path}"
