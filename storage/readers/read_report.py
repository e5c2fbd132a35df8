"""Count the records of a source that were read, and those rejected, with line and reason."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Final

from storage.errors import SourceError
from storage.record import Record

NAME_COLUMNS: Final = "with `--columns` (embed, search, pairs: `--column`; recipes: `ingest.sources[].columns`)"
"""The options that name the text columns, for messages."""
KEPT_EXAMPLES: Final = 20
SHOWN_EXAMPLES: Final = 3
_EXAMPLE_BYTES: Final = 100


class BadRecord(Record):
    """A rejected record."""

    file: str
    """Path of the file, or Hub id."""
    line: int
    """1-based line, or row of a table without lines."""
    reason: str
    example: str
    """The first bytes of the record, with undecodable bytes replaced."""

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}: {self.example!r}"


@dataclass
class ReadReport:
    """Counts for one source, updated while it is read.

    Attributes:
        name: name of the source in messages.
        records: records read, unlabelled ones included.
        unlabelled: pairs without a gold label (−1, "-", blank), which were dropped after reading.
        rejected: records that could not be read.
        bad: the first `KEPT_EXAMPLES` rejected records.
        bytes_read: position in the files, for a progress bar.
    """

    name: str
    records: int = 0
    unlabelled: int = 0
    rejected: int = 0
    bad: list[BadRecord] = field(default_factory=list)
    bytes_read: int = 0

    def reject(self, file: str, line: int, reason: str, example: bytes, lost: int = 1) -> None:
        """Count a record that cannot be read; it spans `lost` lines."""
        self.rejected += lost
        if len(self.bad) < KEPT_EXAMPLES:
            shown = example[:_EXAMPLE_BYTES].decode("utf-8", errors="replace")
            self.bad.append(BadRecord(file=file, line=line, reason=reason, example=shown))

    def check(self, max_bad_share: float) -> None:
        """Refuse a source that is empty or has too many unreadable records.

        Raises:
            SourceError: names the share and the first bad records.
        """
        total = self.records + self.rejected
        if total == 0:
            raise SourceError(
                f"{self.name} contains no records, expected at least one. Correct the source, or remove it."
            )
        if self.rejected > max_bad_share * total:
            limit = f", more than max_bad_share = {max_bad_share:.2%} allows" if max_bad_share else ""
            raise SourceError(
                f"{self.name}: {self.rejected:,} of {total:,} records ({self.rejected / total:.2%}) cannot be read"
                f"{limit}: {'; '.join(map(str, self.bad[:SHOWN_EXAMPLES]))}"
                f"{'; …' if self.rejected > SHOWN_EXAMPLES else ''}. {self._remedy()}"
            )

    def _remedy(self) -> str:
        """Return the remedy for the first bad record."""
        if self.bad and self.bad[0].reason.startswith("not UTF-8"):
            name = shlex.quote(self.bad[0].file)
            return f"Convert the file to UTF-8, for example from Latin-1: `iconv -f latin1 -t utf-8 {name} > utf8.txt`."
        return (
            f"Correct them, name the right columns {NAME_COLUMNS}, or in a recipe set `ingest.sources[].format` or "
            "raise `ingest.max_bad_share`."
        )
