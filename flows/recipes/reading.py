"""How somebody's own files are read, as every verb that begins with them is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from storage.sources.own_text import sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.sources.own_text import TextSource


class ReadingConfig(BaseModel):
    """What the columns of own files hold, where the guess is to be overruled, and the language that they are in."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    columns: tuple[str, ...] = ()
    """Columns that hold text, where the guess is to be overruled."""
    title: str | None = None
    """Column that holds a title, where the guess is to be overruled; "" where none does."""
    document: str | None = None
    """Column whose equal values make a document; such as a source, where whole sources are to be held out; "" where
    none does."""
    lang: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """ISO 639 code of the text."""

    def sources(self, texts: Sequence[str], mirror: str | None) -> tuple[TextSource, ...]:
        """The files, and what is read of them.

        Raises:
            SourceError: one of them is nowhere to be had, or no column of it holds text.
        """
        return sources(
            texts,
            mirror=mirror,
            lang=self.lang,
            columns=self.columns,
            title=self.title,
            document=self.document,
        )
