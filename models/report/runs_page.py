"""Several runs side by side: which is better on the same pairs, in what they differ, how they learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from models.evaluation.study import MEAN
from models.report.charts import mark_of, score_chart, training_charts
from models.report.differences import signed
from models.report.html import Charts, Folded, Page, Part, Prose, Table
from models.report.page import PRINTED, difference_rows, markdown_table, printed, score_rows
from models.report.run_tables import all_scores, score_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from models.report.html import Block
    from models.report.tables import PaperTable

    Rows = Sequence[Mapping[str, Any]]

_MANY: Final = 15  # fields, from which on their table would hide what follows it


@dataclass(frozen=True)
class RunsContent:
    """What a page of several runs is made of.

    Attributes:
        runs: a row a run: its name here, title, key, sentences and so on.
        scores: of each run's result, whose `model` is the run's name.
        comparison: of each run less the first; None without scored pairs.
        settings: a row a field in which they differ, a column a run.
        logs: run → log of its last training.
        tables: the papers' tables.
        devs: run → the set that chose its encoder, as `<data set>/<split>`; none of a run without a training.
    """

    runs: Rows
    scores: pl.DataFrame
    comparison: pl.DataFrame | None
    settings: Rows
    logs: Mapping[str, pl.DataFrame]
    tables: Sequence[PaperTable]
    devs: Mapping[str, str]

    @property
    def title(self) -> str:
        """The page's heading."""
        return f"{len(self.runs)} runs compared"


def runs_page(content: RunsContent) -> str:
    """The page as one HTML file."""
    chart = _chart(content)
    parts = [
        Part("The runs", [Table.of("Runs", content.runs)]),
        Part("Differences", _differences(content)),
        Part("Settings in which they differ", [_settings(content.settings)]),
        Part("Training", [Charts(training_charts(content.logs))] if content.logs else []),
        Part("Scores", [*score_tables(content.scores, content.tables, [], ""), all_scores(content.scores)]),
    ]
    return Page(
        title=content.title,
        word="",
        sentence=" ".join(findings(content)),
        lead=[Charts([chart], lead=True)] if chart else [],
        parts=[part for part in parts if part.blocks],
    ).html()


def runs_markdown(content: RunsContent) -> str:
    """The page as GitHub-flavoured Markdown, without curves."""
    sections = [f"# {content.title}", *findings(content), f"## Runs\n\n{markdown_table(content.runs)}"]
    if content.comparison is not None:
        sections.append(f"## Differences × 100\n\n{markdown_table(difference_rows(content.comparison))}")
    sections.append(f"## Settings in which they differ\n\n{markdown_table(content.settings)}")
    sections += printed(content.scores, content.tables)
    sections.append(f"## All figures × 100\n\n{markdown_table(score_rows(content.scores))}")
    return "\n\n".join(sections) + "\n"


def findings(content: RunsContent) -> list[str]:
    """A sentence a run beside the first: better, worse, or not told apart, on the mean of the test sets or the last.

    A set that chose one of the two encoders speaks only where there is no other, and the sentence says so.
    """
    if content.comparison is None:
        return ["The runs share no set of scored pairs, so nothing is drawn on the same pairs."]
    rows = content.comparison.filter(metric="spearman")
    return [_finding(part, content.devs) for part in rows.partition_by("model", maintain_order=True)]


def _finding(rows: pl.DataFrame, devs: Mapping[str, str]) -> str:
    """The sentence of a run, from its rows in the order of the sets."""
    chose = {devs.get(rows[name][0], "") for name in ("model", "reference")}
    fair = [row for row in rows.iter_rows(named=True) if f"{row['dataset']}/{row['split']}" not in chose]
    tests = [row for row in fair if row["split"] == "test"]
    means = [row for row in tests if row["dataset"] == MEAN]
    row = (means or tests or fair or rows.to_dicts())[-1]
    low, high = row["ci_low"], row["ci_high"]
    word = "better than" if low > 0 else "worse than" if high < 0 else "not told apart from"
    place = f"{row['dataset']} {row['split']}{'' if fair else ', which chose the encoder'}, p {row['p_value']:.3f}"
    return f"{row['model']} is {word} {row['reference']}: Spearman × 100 {signed(row['value'], low, high)} on {place}."


def _settings(rows: Rows) -> Block:
    """The table; behind a line where it is long, as where one run has translators and another none."""
    table = Table.of("Fields, and what each run has", rows)
    return Folded(f"{len(rows)} fields", [table]) if len(rows) > _MANY else table


def _differences(content: RunsContent) -> list[Block]:
    if content.comparison is None:
        return []
    note = "Both runs meet the same draws of pairs; an interval that holds 0 is no difference."
    return [
        Table.of("Differences × 100 from the first run", difference_rows(content.comparison)),
        Prose(note, note=True),
    ]


def _chart(content: RunsContent) -> str | None:
    """Every run's figure on the last test set of scored pairs, else on the first figure that is printed."""
    whole = content.scores.filter(PRINTED)
    tests = whole.filter(split="test", metric="spearman", protocol="all")
    chosen = tests if tests.height else whole
    if not chosen.height:
        return None
    place = chosen.row(-1 if tests.height else 0, named=True)
    own = whole.filter(**{name: place[name] for name in ("dataset", "split", "subset", "metric", "protocol")})
    marks = [
        mark_of(name, "run", value, *ends)
        for name, value, *ends in own.select("model", "value", "ci_low", "ci_high").rows()
    ]
    return score_chart(
        marks, f"{place['metric'].capitalize()} × 100 on {place['dataset']} {place['split']}, with 95 % interval"
    )
