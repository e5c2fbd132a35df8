"""A run's page in HTML: what it found first, then how it came about, then how to have it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.evaluation.signature import joint_signature
from models.report.charts import cosine_charts, training_charts
from models.report.headline import headline
from models.report.html import Charts, Code, Facts, Folded, Page, Part, Prose, Table
from models.report.page import PRINTED, difference_rows
from models.report.run_tables import all_scores, pair_tables, score_tables, stage_table, way
from models.report.use import use_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from models.report.html import Block
    from models.report.run_content import RunContent

_MOST_SETS: Final = 8  # of which pairs are drawn; the tables have all


def run_page(content: RunContent) -> str:
    """The page as one HTML file; equal content gives equal text."""
    chart = headline(content)
    verdict = content.verdict
    sentence = f"{'than the start: ' if verdict.than else ''}{verdict.reason}. {verdict.advice}" if verdict else ""
    return Page(
        title=content.title,
        word=verdict.word if verdict else "",
        sentence=sentence or "Nothing was trained: the encoder is scored as it is.",
        lead=[Charts([chart], lead=True)] if chart else [],
        parts=[part for part in _parts(content) if part.blocks],
    ).html()


def _parts(content: RunContent) -> Iterator[Part]:
    yield Part("What was run", [Facts(content.summary), stage_table(content.artifacts)])
    yield Part("The data's way", [_LEGEND, way(content.artifacts)])
    yield Part("Sentences and views", list(_making(content)))
    yield Part("Training", list(_training(content)))
    yield Part("Scores", list(_scores(content)))
    yield Part("Pairs", list(_pairs(content)))
    yield Part("Skipped, and why", list(_skipped(content)))
    yield Part("Signatures", [_signatures(content)])
    trained = [f"checkpoint/{artifact.key[:12]}" for artifact in content.artifacts if artifact.kind == "checkpoint"]
    yield use_part(trained[-1] if trained else "")
    yield Part("Have it again", list(_again(content)))


_LEGEND: Final = Prose(
    "A box is an artifact of the store: its kind, the beginning of its key, its rows and size. Boxes with a grey edge "
    "were cached: an earlier run made them.",
    note=True,
)


_COUNTED: Final = {"published": "in the corpus"}  # what ingest counts, where its word would mislead here


def _making(content: RunContent) -> Iterator[Block]:
    making = content.making
    if making.sentences:
        counts = {_COUNTED.get(name, name.replace("_", " ")): value for name, value in making.sentences.items()}
        yield Facts({name: f"{value:,}" for name, value in counts.items()})
    if making.examples:
        yield Table.of("Sentences and their views", making.examples)
    if trips := [name for row in making.examples[:1] for name in row if name.startswith("bt-")]:
        yield Prose(f"{', '.join(trips)}: the sentence translated into that language and back.", note=True)
    if making.outcomes:
        outcomes = [{**row, "outcome": str(row["outcome"]).replace("_", " ")} for row in making.outcomes]
        yield Table.of("What became of each sentence on its way to a view", outcomes)
    if making.hops:
        yield Table.of("Translated for this corpus; 0 where the memory held all", making.hops)
    for name, rows in making.pairings.items():
        yield Table.of(f"Pairs of {name}", rows)


def _training(content: RunContent) -> Iterator[Block]:
    if content.logs:
        yield Facts(content.training)
        yield Charts(training_charts(content.logs))


def _scores(content: RunContent) -> Iterator[Block]:
    result = content.systems[-1]
    yield from score_tables(content.scores, content.tables, content.published, result)
    if content.published:
        yield Prose(
            "Published rows were not measured here; their encoder, corpus and translator are their authors' own.",
            note=True,
        )
    if content.comparison is not None:
        yield Table.of("Differences × 100 on the same draws of pairs", difference_rows(content.comparison))
    yield Folded("All figures with their intervals", [all_scores(content.scores)])


def _pairs(content: RunContent) -> Iterator[Block]:
    drawn = list(content.drawn)
    for number, scored in enumerate(content.sets[:_MOST_SETS]):
        cosines = {system: scored.cosines[system] for system in drawn if system in scored.cosines}
        if not cosines:
            continue
        yield Prose(scored.name, under=True)
        yield Charts(cosine_charts(str(number), scored.pairs["score"].to_numpy(), cosines))
        yield Folded(f"Pairs of {scored.name} that tell something", list(pair_tables(scored, list(cosines))))
    if len(content.sets) > _MOST_SETS:
        yield Prose(f"Of {len(content.sets)} sets the first {_MOST_SETS} are drawn.", note=True)


def _skipped(content: RunContent) -> Iterator[Block]:
    left_out = {**content.missing, **content.findings}
    if left_out:
        yield Table.of("Left out", [{"what": name, "why": why} for name, why in left_out.items()])
    else:
        yield Prose("Nothing: every set that was asked for was scored.")


def _signatures(content: RunContent) -> Table:
    groups = content.scores.filter(PRINTED).group_by("model", "metric", "protocol", maintain_order=True)
    lines = [
        {"system": f"{model}: {metric}, {protocol}", "signature": joint_signature(rows["signature"].to_list())}
        for (model, metric, protocol), rows in groups
    ]
    return Table.of("How the figures came about: lines to be pasted beside them", lines)


def _again(content: RunContent) -> Iterator[Block]:
    again = content.reproduction
    if again.command:
        yield Code(again.command)
    yield Facts(again.environment)
    yield Facts(_spelled(again.seeds))
    yield Folded("The complete configuration", [Code(again.config)])


def _spelled(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
