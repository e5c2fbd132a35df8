"""Draw charts of tables in the documents: `python -m docs.chart`.

docs/tiny.svg shows the table in README.md; docs/memory.svg shows the table of memory and CPU time in BENCHMARKS.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bsl.tasks.rendering.charts import Mark, score_chart
from bsl.tasks.rendering.svg import MUTED, SERIES, inline, plot

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
CHART: Final = HERE / "tiny.svg"
MEMORY: Final = HERE / "memory.svg"
_ROW: Final = re.compile(
    r"^\| (?P<system>.+?) \|.*\| (?P<value>[\d.]+) \[(?P<low>[\d.]+), (?P<high>[\d.]+)\] \|$", re.M
)
_SIZES: Final = re.compile(
    r"^\| step \| peak GiB: (?P<sizes>[\d, |]+) \| 100 M, computed \|.*\n\|[-:|]+\n(?P<rows>(?:\|.*\|\n?)+)", re.M
)
_GOAL_GIB: Final = 4
_PAPER: Final = re.compile(r"In the paper (?P<system>BSL-BERT) has (?P<value>[\d.]+) on STS-B", re.DOTALL)


def marks(readme: str) -> Iterator[Mark]:
    """Yield the scores in the table's last column (STS-B test), and the paper's score from the text below it.

    Args:
        readme: Text of README.md.
    """
    for row in _ROW.finditer(readme):
        first = row["system"].partition(" ")[0]
        role = first if first in ("before", "after") else "baseline"
        yield Mark(row["system"], role, float(row["value"]), float(row["low"]), float(row["high"]))
    for told in _PAPER.finditer(readme):
        yield Mark(f"{told['system']} of the paper, BERT-base", "published", float(told["value"]))


def chart(readme: str) -> str:
    """Return the chart of the README's table as a standalone SVG."""
    return score_chart(list(marks(readme)), "Spearman × 100 on STS-B test, with 95 % interval").standalone()


def costs(benchmarks: str) -> tuple[list[int], dict[str, tuple[list[float], list[float]]]]:
    """Return the corpus sizes, and for each step the peak GiB and the µs per sentence at each size.

    Args:
        benchmarks: Text of BENCHMARKS.md.
    """
    found = _SIZES.search(benchmarks)
    assert found, "BENCHMARKS.md has no table of memory as bench_memory.py prints it"
    sizes = [int(size.replace(",", "")) for size in found["sizes"].split(" | ")]
    steps = {}
    for line in found["rows"].splitlines():
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        figures = [float(cell) for cell in cells]
        steps[name] = (figures[: len(sizes)], figures[len(sizes) + 1 :])
    return sizes, steps


def memory_chart(benchmarks: str) -> str:
    """Return a standalone SVG: peak memory and CPU time against the number of sentences."""
    sizes, steps = costs(benchmarks)
    with plot(5.2) as figure:
        above, below = figure.subplots(2, sharex=True)
        for (name, lines), colour in zip(steps.items(), (*SERIES, MUTED), strict=True):
            for axes, line in zip((above, below), lines, strict=True):
                axes.plot(sizes, line, marker="o", markersize=3.5, color=colour, label=name)
        above.axhline(_GOAL_GIB, color=MUTED, linestyle="--", linewidth=0.8, label="goal")
        above.set_title("Peak memory, GiB", loc="left")
        below.set_title("CPU time, µs a sentence", loc="left")
        for axes in (above, below):
            axes.set_ylim(bottom=0)
        below.set_xscale("log")
        below.set_xticks(sizes, [f"{size / 1e6:g} M" for size in sizes])
        below.minorticks_off()
        below.set_xlabel("sentences")
        figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        last = (f"{name} {peaks[-1]:g} GiB and {cost[-1]:g} µs" for name, (peaks, cost) in steps.items())
        label = f"Peak memory and CPU time a sentence by sentences; at {sizes[-1] / 1e6:g} M {', '.join(last)}"
        return inline(figure, "memory", label).standalone()


if __name__ == "__main__":
    MEMORY.write_text(memory_chart((HERE.parent / "BENCHMARKS.md").read_text(encoding="utf-8")), encoding="utf-8")
    CHART.write_text(chart((HERE.parent / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
