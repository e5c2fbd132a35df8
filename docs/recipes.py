"""Generate a page for each recipe: published row, requirements, duration and deviations from the row."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.listing import listings
from bsl.flows.recipes.published_rows import COMMANDS, ROWS, deviations
from bsl.models.evaluation.published import AVERAGE, rows_of
from docs.fidelity import whole_table
from docs.kinds import contents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.flows.config import PipelineConfig
    from bsl.flows.recipes.listing import Listing

FOLDER: Final = "recipes"
_INDEX: Final = """\
# Recipes

A recipe is a complete configuration. `bsl run RECIPE` runs it, `--set field=value` changes a field of it.

| recipe | what it is | published row |
|---|---|---|
"""
_COMMANDS: Final = """
Published rows that a command reproduces, not a recipe:

| row | command |
|---|---|
"""


def recipe_pages() -> dict[str, str]:
    """Return file → page; the list of all recipes comes first."""
    listed = listings()
    return {f"{FOLDER}/index.md": _index(listed)} | {
        f"{FOLDER}/{listing.name}.md": "\n".join(_page(listing, recipe(listing.name))) + "\n" for listing in listed
    }


def _index(listed: list[Listing]) -> str:
    commands = "\n".join(f"| {row} | `{command}` |" for row, command in COMMANDS.items())
    rows = "\n".join(f"| [{item.name}]({item.name}.md) | {item.purpose} | {item.row or '–'} |" for item in listed)
    return f"{_INDEX}{rows}\n{_COMMANDS}{commands}\n{contents(item.name for item in listed)}"


def _page(listing: Listing, config: PipelineConfig) -> Iterator[str]:
    yield from (f"# {listing.name}", "", inspect.cleandoc(RECIPES[listing.name].__doc__ or ""), "")
    yield from ("```sh", f"bsl doctor {listing.name}", f"bsl run {listing.name}", "```", "")
    yield from ("## Requirements and duration", "")
    yield from (f"- {name}" for name in listing.needs or ("only the package",))
    yield from (f"- {listing.duration}", "", "## Pipeline", "", *_pipeline(config), "")
    yield from _published(listing)
    yield from _deviations(listing, config)
    yield from ("## Complete configuration", "", "```json")
    yield from (config.model_dump_json(indent=1), "```")


def _pipeline(config: PipelineConfig) -> Iterator[str]:
    sources = ", ".join(source.dataset or f"`{source.path}`" for source in config.ingest.sources) or "none"
    yield f"- corpus: {sources}"
    if config.augment.methods:
        yield f"- views: {', '.join(f'`{name}`' for name in config.augment.methods)}"
    yield f"- original encoder: `{config.encoder.model}`"
    for phase in config.phases:
        training = phase.training
        steps = f", at most {training.max_steps:,} steps" if training.max_steps else ""
        objective = training.objective.name
        yield f"- training: `{objective}`, batches of {training.batch_size}, learning rate {training.lr:g}{steps}"
    if config.transform:
        yield f"- then `{config.transform.name}`, fitted on the {config.transform_on}"
    yield f"- evaluated on: {', '.join(f'`{name}`' for name in config.evaluation.sets)}"


def _published(listing: Listing) -> Iterator[str]:
    if not listing.row:
        return
    yield from (f"## Published row: {listing.row}", "")
    for row in rows_of(listing.row):
        columns = list(row.cells)
        yield from (f"{row.source}, {row.metric} × 100, protocol `{row.protocol}`:", "")
        yield f"| {' | '.join('mean' if name == AVERAGE else name for name in columns)} |"
        yield f"|{'--:|' * len(columns)}"
        yield from (f"| {' | '.join(row.cells[name] or '–' for name in columns)} |", "")


def _deviations(listing: Listing, config: PipelineConfig) -> Iterator[str]:
    if listing.row not in ROWS:
        return
    yield from ("## Differences from the row", "")
    found = deviations(config, listing.row)
    yield from (f"- {reason}" for reason in found or ("none in the configuration",))
    yield ""
    if choices := whole_table(listing.name):
        yield from ("## All choices, compared with paper and released code", "", *choices, "")
