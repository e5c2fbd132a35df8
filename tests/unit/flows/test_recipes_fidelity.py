"""FIDELITY.md agrees with the recipes in every value it prints, and names every deviation."""

import json
import re
from collections.abc import Iterator
from operator import attrgetter

from pydantic import BaseModel

from bsl.flows.recipes import RECIPES, recipe
from docs.fidelity import PAGE, choices, generated, tables, value_at, whole_table
from docs.fidelity import QUOTED as VALUE
from tests.every import every

SOURCE = re.compile(r"\((§|Tables? |Appendix|Figure|equation|[\w/]+\.py|README\.md)[^()]*\)$")
OF_THE_CODE = {"nli-released", "multilingual-released", "sbert-released", "sroberta-2022", "isbert-released"} | {
    "scl-released",
    "mbert-sbert", "xlmr-sbert", "distil", "distil-minilm", "flow", "flow-target", "whitening",
    "bert-mlm", "tsdae", "simcse",
}  # fmt: skip
WHOLE = ("training", "encoder", "pairs")  # sections whose every field has a row


ROWS = choices()


def test_fidelity_page_has_every_table_with_a_difference():
    assert len(ROWS) > 300
    assert {name for row in ROWS for name in row.recipes} <= set(RECIPES)
    headers = [line for line in PAGE.read_text().splitlines() if line.startswith("| choice |")]
    shown = {tuple(VALUE.findall(line)) for line in headers}
    assert shown == {names for names, rows in tables().items() if any(row.differs for row in rows)}


def test_fidelity_page_values_match_the_recipes():
    page = PAGE.read_text()
    assert generated(page) == page, "run `python -m docs.fidelity`"
    spoiled = page.replace("| `0.0005` |", "| `0.0006` |")
    assert spoiled != page
    assert generated(spoiled) == page


def test_whole_table_lists_every_choice_of_a_recipe():
    lines = whole_table("nli-released")
    assert "| epochs | `training.epochs` | `1` (Table 8) | `1` (unsupervised_tuning.py) | `1` | `1` | |" in lines
    assert len(lines) == 2 + sum("nli-released" in row.recipes for row in ROWS)
    assert whole_table("tiny") == []


@every(ROWS)
def test_every_source_is_cited_and_a_value_unlike_its_source_has_a_remark(row):
    for cell in (row.paper, row.code):
        assert cell == "not stated" or SOURCE.search(cell), cell
    for name in row.recipes if row.field else ():
        source = row.code if name in OF_THE_CODE else row.paper
        said = VALUE.findall(source)
        if said and json.loads(said[0]) != value_at(recipe(name), row.field):
            assert row.remark.startswith("Deviation"), f"{name} differs from {source}"


def test_every_field_of_three_recipe_sections_has_a_row():
    first = next(iter(tables().values()))
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
