"""The chart of the README, drawn from the table below it: `python -m docs.chart` writes docs/tiny.svg."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import models.report
from models.report.charts import Mark, score_chart

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
CHART: Final = HERE / "tiny.svg"
_STYLE: Final = Path(models.report.__file__).parent / "templates" / "style.css"
_ROW: Final = re.compile(
    r"^\| (?P<system>.+?) \|.*\| (?P<value>[\d.]+) \[(?P<low>[\d.]+), (?P<high>[\d.]+)\] \|$", re.M
)
_PAPER: Final = re.compile(r"the paper's (?P<system>BSL-BERT).*?has (?P<value>[\d.]+) on test", re.DOTALL)


def marks(readme: str) -> Iterator[Mark]:
    """The figures of the table's last column, STS-B test, and the paper's from the sentence below.

    Args:
        readme: text of README.md.
    """
    for row in _ROW.finditer(readme):
        first = row["system"].partition(" ")[0]
        role = first if first in ("before", "after") else "baseline"
        yield Mark(row["system"], role, *(float(row[name]) for name in ("value", "low", "high")))
    for told in _PAPER.finditer(readme):
        yield Mark(f"{told['system']} of the paper, BERT-base", "published", float(told["value"]))


def chart(readme: str) -> str:
    """A file that stands by itself, on light and on dark pages: the report's chart with the report's colours."""
    drawn = score_chart(list(marks(readme)), "Spearman × 100 on STS-B test, with 95 % interval")
    colours = _STYLE.read_text(encoding="utf-8").partition("* {")[0]
    style = f"{colours}:root {{ background: var(--paper); font-family: system-ui, sans-serif; }}"
    opening, inside = drawn.split(">", 1)
    named = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" width="640"')
    return f"{named}>\n<style>\n{style}\n</style>{inside}\n"


if __name__ == "__main__":
    CHART.write_text(chart((HERE.parent / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
