"""Score the forms of an encoder on sets that the user names, such as labels, and say which forms lose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.models.evaluation.signature import with_sign
from bsl.tasks.evaluation.kinds import FoundSets, UnknownSuiteError, available, kind_of, names_of
from bsl.tasks.evaluation.python_api import differences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.stage.run_context import RunContext

TITLE: Final = "Scores of the forms × 100 on your sets, before (first form) and after"
WORDS: Final[Mapping[str, str]] = {"above": "gains", "below": "loses", "no": "no difference"}
"""Verdict of a difference → the word in the table."""


def form_sets(site: RunContext, names: Sequence[str]) -> FoundSets:
    """Find the sets.

    Raises:
        UnknownSuiteError: A name is no set, or a set on which systems are not compared.
        SourceError: A set is not available.
    """
    listed = names_of(names)
    if other := [name for name in listed if not kind_of(name).is_drawn]:
        raise UnknownSuiteError(
            f"--suite {other[0]}: forms are compared on scored pairs and on your text (expected labels:FILE, own:FILE, "
            f"or sets such as sts). Score the exported folders instead: bsl evaluate FOLDER --suite {other[0]}"
        )
    return available(site, listed)


def form_rows(forms: Mapping[str, Vectors], found: FoundSets) -> list[dict[str, str]]:
    """Return a row for each set, metric and form: score before and after, the difference, and a word for it.

    All forms are compared with the first, on the same draws of rows.
    """
    return [
        {
            "set": drawn.name,
            "metric": drawn.metric,
            "form": form,
            "before": f"{100 * float(drawn.systems[0].figures.mean()):.2f}",
            "after": f"{100 * float(system.figures.mean()):.2f}",
            "difference": with_sign(change.value, change.ci_low, change.ci_high),
            "verdict": WORDS[change.verdict],
        }
        for drawn, form, system, change in differences(forms, found)
    ]


def losses(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a sentence on the forms that lose; empty if none does."""
    lost = [f"{row['form']} on {row['set']} ({row['difference']})" for row in rows if row["verdict"] == WORDS["below"]]
    return f"These forms lose: {'; '.join(lost)}." if lost else ""
