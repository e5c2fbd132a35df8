"""Findings of checks, as `bsl doctor`, `bsl artifacts verify` and the checks of benchmarks and assets print them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        subject: The thing checked.
        verdict: A word; in capitals if the command then fails.
        found: The finding.
        remedy: How to fix it; separate, because several findings may share it.
    """

    subject: str
    verdict: str
    found: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:<7} {self.subject}{': ' + self.found if self.found else ''}"

    @property
    def cells(self) -> dict[str, str]:
        """The row of a table."""
        return {"": self.verdict, "subject": self.subject, "found": self.found}


def exit_code(findings: Iterable[Finding]) -> int:
    """Return the exit code of a command: 1 if a verdict is in capitals."""
    return int(any(finding.verdict.isupper() for finding in findings))
