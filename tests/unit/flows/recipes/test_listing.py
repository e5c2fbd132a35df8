"""`bsl recipes` lists every recipe with its needs, and with hours from a documented calculation."""

import json
from itertools import product

import pytest

from bsl.flows.cli.main import main
from bsl.flows.config import override
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.listing import PAIRS_PER_S, TOKENS_PER_S, gpu_hours, listings
from bsl.flows.recipes.published_rows import COMMANDS, REASONS, ROWS
from bsl.flows.sweep.printed_rows import row_lines
from bsl.flows.sweep.studies import STUDIES
from bsl.models.evaluation.published import published_rows

NLI = 550_152 + 392_702  # records of SNLI and MultiNLI


def test_listings_give_purpose_needs_and_sets_of_every_recipe(capsys):
    listed = {listing.name: listing for listing in listings()}
    assert list(listed) == list(RECIPES)
    assert all(listing.purpose.endswith(".") and len(listing.lines) == 2 for listing in listed.values())
    assert all(bool(listing.needs) != name.startswith("tiny") for name, listing in listed.items())
    assert {"stsb/train", "stsb/dev", "snli"} <= {*listed["sbert-nli-stsb"].needs}
    assert "WordNet 3.0" in listed["synonym"].needs
    assert {"afs (your files)", "stsb/dev"} <= {*listed["afs"].needs}
    assert not any(name.startswith("stsb") for name in listed["bert-avg"].needs)  # without training no dev set chooses
    assert listed["afs"].scored_on == ("afs (your files)",)
    assert listed["tiny"].scored_on == ("embedded:stsb/dev", "embedded:stsb/test")
    assert main(["recipes", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == list(RECIPES)
    assert main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Laptop recipes: complete runs")
    assert {word for line in lines if line.startswith("  ") for word in line.split()} >= {*RECIPES}


@pytest.fixture(scope="module")
def lines_of_rows():
    """Return printed row → its lines in `bsl recipes`, of recipes or of the row itself."""
    found: dict[str, list[str]] = {}
    for listing in listings():
        if listing.is_row:
            found.setdefault(listing.row, []).append(listing.lines[1])
    for line in row_lines():
        name, _, said = line.partition(" · ")
        row = max((row.system for row in published_rows() if name.startswith(row.system)), key=len)
        found.setdefault(row, []).append(said)
    return found


def test_every_paper_row_has_recipe_study_command_or_reason(lines_of_rows, capsys):
    assert main(["recipes", "--all"]) == 0
    printed = capsys.readouterr().out
    needs = "snli, multi_nli, stsb/dev, FacebookAI/roberta-base, 4 OPUS-MT models"
    assert f"BSL-RoBERTa (BSL Table 1 + 2) · needs {needs} · scored on stsb/dev, sts, senteval · " in printed
    assert f"IS-BERT Table 4 · {COMMANDS['BERT-STSb']}\n" in printed
    rows = [row for row in published_rows() if row.kind == "paper"]
    assert len(rows) == 183
    lacking = [f"{row.source}: {row.system}" for row in rows if row.system not in lines_of_rows]
    unsaid = [line for lines in lines_of_rows.values() for line in lines if line not in printed]
    unknown = [
        f"{row}: {said}"
        for row, lines in lines_of_rows.items()
        for said in lines
        if row not in ROWS and not _is_known(row, said)
    ]
    assert not lacking + unsaid + unknown, "\n".join(lacking + unsaid + unknown)


def _is_known(row, said):
    """Whether a line names studies with the row as a point, the row's command, or its reason."""
    if not said.startswith("bsl sweep "):
        return said in {COMMANDS.get(row), REASONS.get(row)}
    studies = [STUDIES[command.split()[-1]] for command in said.split(" and ")]
    return all(row in {study.row(values) for values in product(*study.over.values())} for study in studies)


@pytest.mark.parametrize(
    ("name", "changes", "seconds"),
    [
        ("nli", {}, NLI * 4 // 3 * (4 * 16 / TOKENS_PER_S + 1 / PAIRS_PER_S)),
        ("entail", {}, NLI // 3 / PAIRS_PER_S),
        (
            "nli",
            {"ingest": {"corpus": {"limit": 1000}}, "training": {"max_steps": 1}},
            64_000 / TOKENS_PER_S + 64 / PAIRS_PER_S,
        ),
        ("isbert-trec", {}, 5452 / PAIRS_PER_S),  # of the split that is read
        ("isbert-mrpc", {}, 2 * 4076 / PAIRS_PER_S),
        ("nli", {"training": None}, 0),
    ],
)
def test_gpu_hours_add_translation_and_training_at_documented_rates(name, changes, seconds):
    assert gpu_hours(override(recipe(name), changes)) == pytest.approx(seconds / 3600, rel=1e-5)


def test_gpu_hours_of_files_are_unknown():
    assert gpu_hours(override(recipe("nli"), {"ingest": {"sources": [{"path": "sentences.txt"}]}})) is None
