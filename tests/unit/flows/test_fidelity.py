"""FIDELITY.md against the recipes: every value that it prints of a recipe, and every deviation that it must own to."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from pydantic import BaseModel

from docs.fidelity import PAGE, cells, generated, value_at
from docs.fidelity import QUOTED as VALUE
from flows.recipes import RECIPES, recipe
from tests.every import every

SOURCE = re.compile(r"\((§|Tables? |Appendix|Figure|equation|[\w/]+\.py|README\.md)[^()]*\)$")
OF_THE_CODE = {"nli-released", "multilingual-released", "sbert-released", "sroberta-2022", "isbert-released"} | {
    "scl-released",
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


def tables() -> Iterator[list[Row]]:
    for block in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(), flags=re.MULTILINE):
        header, _, *lines = block.splitlines()
        if not header.startswith("| choice |"):
            continue
        names = [VALUE.findall(cell)[0] for cell in cells(header)[4:-1]]
        yield [read(line, names) for line in lines]


def read(line: str, names: list[str]) -> Row:
    choice, field, paper, code, *given, remark = cells(line)
    field_name = VALUE.findall(field)
    return Row(choice, field_name[0] if field_name else None, paper, code, dict(zip(names, given, strict=True)), remark)


ROWS = [row for table in tables() for row in table]
CHECKED = [(row, name) for row in ROWS if row.field for name in row.recipes]


def test_the_page_is_read_whole():
    found = list(tables())
    assert len(found) == PAGE.read_text().count("\n| choice |") >= 8
    assert all(len(table) > 4 for table in found)
    assert {name for row in ROWS for name in row.recipes} <= set(RECIPES)


def test_the_columns_of_recipes_are_as_the_recipes():
    page = PAGE.read_text()
    assert generated(page) == page, "run `python -m docs.fidelity`"
    spoiled = page.replace("| `0.0005` |", "| `0.0006` |")
    assert spoiled != page
    assert generated(spoiled) == page


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
