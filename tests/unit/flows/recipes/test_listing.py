"""`bsl recipes` lists every recipe with its needs, and with hours from a documented calculation."""

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


def test_listings_give_purpose_and_needs_of_every_recipe():
    assert [listing.name for listing in listings()] == list(RECIPES)
    assert all(listing.purpose.endswith(".") and len(listing.lines) == 2 for listing in listings())
    assert all(bool(listing.needs) != listing.name.startswith("tiny") for listing in listings())


def test_recipes_command_prints_paper_tables_of_each_row(capsys):
    assert main(["recipes", "--all"]) == 0
    printed = capsys.readouterr().out
    needs = "snli, multi_nli, stsb/dev, FacebookAI/roberta-base, 4 OPUS-MT models"
    scored = "stsb/dev, sts, senteval"
    assert f"BSL-RoBERTa (BSL Table 1 + 2) · needs {needs} · scored on {scored} · " in printed
    assert f"IS-BERT Table 4 · {COMMANDS['BERT-STSb']}\n" in printed


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
    if said.startswith("bsl sweep "):
        return all(_has_point(STUDIES[command.split()[-1]], row) for command in said.split(" and "))
    return said in {COMMANDS.get(row), REASONS.get(row)}


def _has_point(study, row):
    return row in {study.row(values) for values in product(*study.over.values())}


def test_listing_names_training_dev_and_scored_datasets():
    needs = {listing.name: set(listing.needs) for listing in listings()}
    assert {"stsb/train", "stsb/dev", "snli"} <= needs["sbert-nli-stsb"]
    assert "WordNet 3.0" in needs["synonym"]
    assert {"afs (your files)", "stsb/dev"} <= needs["afs"]
    assert not any(name.startswith("stsb") for name in needs["bert-avg"])  # nothing is trained, so no dev set chooses
    scored = {listing.name: listing.scored_on for listing in listings()}
    assert scored["afs"] == ("afs (your files)",)
    assert scored["tiny"] == ("embedded:stsb/dev", "embedded:stsb/test")


def test_gpu_hours_add_translation_and_training_at_documented_rates():
    sentences = (550_152 + 392_702) * 4 // 3
    expected = sentences * 4 * 16 / TOKENS_PER_S + sentences / PAIRS_PER_S
    assert gpu_hours(recipe("nli")) == pytest.approx(expected / 3600, rel=1e-5)
    entailed = (550_152 + 392_702) // 3
    assert gpu_hours(recipe("entail")) == pytest.approx(entailed / PAIRS_PER_S / 3600, rel=1e-5)


def test_corpus_limit_and_max_steps_bound_gpu_hours():
    short = override(recipe("nli"), {"ingest": {"corpus": {"limit": 1000}}, "training": {"max_steps": 1}})
    assert gpu_hours(short) == pytest.approx((64_000 / TOKENS_PER_S + 64 / PAIRS_PER_S) / 3600)


def test_gpu_hours_count_only_sentences_of_the_split_read():
    assert gpu_hours(recipe("isbert-trec")) == pytest.approx(5452 / PAIRS_PER_S / 3600)
    assert gpu_hours(recipe("isbert-mrpc")) == pytest.approx(2 * 4076 / PAIRS_PER_S / 3600)


def test_gpu_hours_are_none_for_files_zero_without_training():
    assert gpu_hours(override(recipe("nli"), {"ingest": {"sources": [{"path": "sentences.txt"}]}})) is None
    assert gpu_hours(override(recipe("nli"), {"training": None})) == 0
