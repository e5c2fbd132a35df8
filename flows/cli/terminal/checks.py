"""Checks of the names in a call before a verb imports anything heavy; help imports nothing of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.cli.terminal.options import Place


def check_texts(texts: Sequence[str], place: Place) -> None:
    """Check that every name is that of files or of a dataset.

    Args:
        texts: files, folders, patterns or datasets.
        place: names the mirror, which may have a dataset.

    Raises:
        SourceError, AssetError: there is nothing of that name; the message has the nearest.
    """
    from flows.run_context import run_context_of
    from storage.sources.own_text import check_named

    for name in texts:
        check_named(name, run_context_of(place.given).mirror)


def check_files(*paths: str | None) -> None:
    """Check that there are files at paths; None is skipped.

    Raises:
        SourceError: there is none; the message has the nearest.
    """
    from storage.sources.paths import listed

    for path in filter(None, paths):
        listed(path)


def check_encoders(names: Sequence[str | None], place: Place) -> None:
    """Check the names of encoders as far as the package, this machine and the store can tell; the Hub is not asked.

    Args:
        names: as verbs take them; None is skipped.
        place: names the store and the mirror.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it; the message has the nearest.
    """
    from flows.run_context import run_context_of
    from storage.artifacts.lookup import MADE_HERE, find
    from storage.sources.model_sources import check_model_name
    from storage.sources.word_vectors import check_vectors_name, is_vectors_file

    site = run_context_of(place.given)
    for name in filter(None, names):
        if MADE_HERE.fullmatch(name):
            find(site.open_store(), name)
        elif is_vectors_file(name):
            check_vectors_name(name)
        else:
            check_model_name(name, site.mirror)
