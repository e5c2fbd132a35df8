"""Count the records of a source that were read, and those rejected, with line and reason."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from bsl.storage.errors import SourceError
from bsl.storage.readers.encodings import remedy
from bsl.storage.record import Record

NAME_COLUMNS: Final = (
    "with `--columns` (embed, search, pairs: `--column`; recipes: `ingest.sources[].columns`; for own:FILE rename the "
    "column in the file to text)"
)
"""The options that name the text columns, for messages."""
KEPT_EXAMPLES: Final = 20
SHOWN_EXAMPLES: Final = 3
_EXAMPLE_BYTES: Final = 100
_NOT_UTF8: Final = "not UTF-8"
_FIELDS: Final = re.compile(r"(\d+) fields, expected (\d+)")
_DECIDING_BYTES: Final = 10_000  # of undecodable lines, to recognise their encoding


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
        empty: text cells that are null or blank.
        bad: the first `KEPT_EXAMPLES` rejected records.
        bytes_read: position in the files, for a progress bar.
    """

    name: str
    records: int = 0
    unlabelled: int = 0
    rejected: int = 0
    empty: int = 0
    bad: list[BadRecord] = field(default_factory=list)
    bytes_read: int = 0
    _undecodable: bytes = b""

    def reject(self, file: str, line: int, reason: str, example: bytes, lost: int = 1) -> None:
        """Count a record that cannot be read; it spans `lost` lines."""
        self.rejected += lost
        if reason.startswith(_NOT_UTF8):
            self._undecodable += example[:_EXAMPLE_BYTES] if len(self._undecodable) < _DECIDING_BYTES else b""
        if len(self.bad) < KEPT_EXAMPLES:
            shown = example[:_EXAMPLE_BYTES].decode("utf-8", errors="replace")
            self.bad.append(BadRecord(file=file, line=line, reason=reason, example=shown))

    @property
    def first(self) -> str:
        """File name, line and fault of the first rejected record; empty without one."""
        return "".join(f"{PurePosixPath(bad.file).name}, line {bad.line}: {bad.reason}" for bad in self.bad[:1])

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
                f"{'; …' if self.rejected > SHOWN_EXAMPLES else ''}. {self.remedy()}"
            )

    def remedy(self) -> str:
        """Return the remedy for the first bad record."""
        first = self.bad[0].reason if self.bad else ""
        if first.startswith(_NOT_UTF8):
            return remedy(self.bad[0].file, self._undecodable)
        if first.endswith(("closing quote", "quote is not closed")):
            return (
                'Close each quote that opens a field, and double the quotes inside such a field (`"a ""b"""`), or '
                "write the file again, for example as JSON lines."
            )
        if (counts := _FIELDS.fullmatch(first)) and int(counts[1]) > int(counts[2]):
            quote = "Put quotes around texts that contain the separator"
            if counts[2] == "1":
                return (
                    f"{quote}, and remove lines above the header. Or if each line is a text, remove the header line "
                    "and rename the file to .txt."
                )
            one_more = {f"{int(counts[2]) + 1} fields, expected {counts[2]}"}
            if self.rejected > SHOWN_EXAMPLES and not self.records and {bad.reason for bad in self.bad} == one_more:
                return (
                    "If the records begin with row names, as R writes them, write the file with row.names = FALSE, or "
                    "begin the header with a name for their column. Else put quotes around texts that contain the "
                    "separator."
                )
            return f"{quote}, or write the file again, for example as JSON lines."
        if first.endswith("expected a string"):
            if "an object" in first or "a list" in first:
                return f"Name another column {NAME_COLUMNS}, or write the text of these values in the file as strings."
            return "Put quotes around these values in the file, or name another column " + NAME_COLUMNS + "."
        return (
            f"Correct them, name the right columns {NAME_COLUMNS}, or in a recipe set `ingest.sources[].format` or "
            "raise `ingest.max_bad_share`."
        )
