"""FIDELITY.md against the recipes: every value that it prints of a recipe, and every deviation that it must own to."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from pydantic import BaseModel

from flows.recipes import RECIPES, recipe
from tests.every import every

PAGE = Path(__file__).parents[3] / "FIDELITY.md"
SOURCE = re.compile(r"\((§|Tables? |Appendix|Figure|equation|[\w/]+\.py|README\.md)[^()]*\)$")
VALUE = re.compile(r"`([^`]+)`")
OF_THE_CODE = {"nli-released", "multilingual-released", "sroberta-2022", "isbert-released"} | {
    "mbert-sbert", "xlmr-sbert", "distil", "distil-minilm", "flow", "flow-target", "whitening",
    "bert-mlm", "tsdae", "simcse", "vicreg", "barlow",
}  # fmt: skip
WHOLE = ("training", "encoder", "pairs", "augment.filters")  # sections whose every field has a row


@dataclass(frozen=True)
class Row:
    choice: str
    field: str | None
    paper: str
    code: str
    recipes: dict[str, str]
    remark: str

    def source_of(self, name: str) -> str:
        return self.code if name in OF_THE_CODE else self.paper


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables() -> Iterator[list[Row]]:
    for block in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(), flags=re.MULTILINE):
        header, _, *lines = block.splitlines()
        names = [VALUE.findall(cell)[0] for cell in cells(header)[4:-1]]
        yield [read(line, names) for line in lines]


def read(line: str, names: list[str]) -> Row:
    choice, field, paper, code, *given, remark = cells(line)
    field_name = VALUE.findall(field)
    return Row(choice, field_name[0] if field_name else None, paper, code, dict(zip(names, given, strict=True)), remark)


def value_at(config: BaseModel, path: str) -> object:
    found: object = config.model_dump(mode="json")
    for step in path.split("."):
        assert isinstance(found, dict | list)
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


ROWS = [row for table in tables() for row in table]
CHECKED = [(row, name) for row in ROWS if row.field for name in row.recipes]


def test_the_page_is_read_whole():
    found = list(tables())
    assert len(found) == len(re.findall(r"(?m)^\|---", PAGE.read_text())) >= 8
    assert all(len(table) > 4 for table in found)
    assert {name for row in ROWS for name in row.recipes} <= set(RECIPES)


@every(CHECKED)
def test_every_printed_value_is_the_recipes_own(row, name):
    (printed,) = VALUE.findall(row.recipes[name])
    assert row.recipes[name] == f"`{printed}`"
    assert json.loads(printed) == value_at(recipe(name), row.field)


@every(ROWS)
def test_every_cell_of_a_source_names_its_place_or_says_that_there_is_none(row):
    for cell in (row.paper, row.code):
        assert cell == "unsaid" or SOURCE.search(cell), cell


@every(CHECKED)
def test_what_differs_from_its_source_is_called_a_deviation(row, name):
    said = VALUE.findall(row.source_of(name))
    if said and json.loads(said[0]) != value_at(recipe(name), row.field):
        assert row.remark.startswith("Deviation"), f"{name} differs from {row.source_of(name)}"


def test_every_field_of_training_encoder_pairs_and_filters_has_a_row():
    first = next(tables())
    fields = {row.field for row in first if row.field}
    config = recipe("nli")
    wanted = {path for section in WHOLE for path in leaves(attrgetter(section)(config), section)}
    assert wanted - fields == {"pairs.pairings.0.lang_1", "pairs.pairings.0.lang_2"}


def leaves(config: BaseModel, path: str) -> Iterator[str]:
    for name in type(config).model_fields:
        inner = getattr(config, name)
        if isinstance(inner, BaseModel):
            yield from leaves(inner, f"{path}.{name}")
        elif isinstance(inner, tuple) and all(isinstance(part, BaseModel) for part in inner):
            for number, part in enumerate(inner):
                yield from leaves(part, f"{path}.{name}.{number}")
        else:
            yield f"{path}.{name}"
