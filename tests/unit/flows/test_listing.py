"""`bsl recipes`: every recipe at a glance, with what it takes by arithmetic that can be followed."""

import json

import pytest

from flows.cli.main import main
from flows.config import override
from flows.recipes import RECIPES, recipe
from flows.recipes.listing import PAIRS_PER_S, TOKENS_PER_S, gpu_hours, listings
from flows.recipes.published_rows import COMMANDS


def test_every_recipe_is_listed_with_purpose_needs_and_hours():
    assert [listing.name for listing in listings()] == list(RECIPES)
    assert all(listing.purpose.endswith(".") and len(listing.lines) == 2 for listing in listings())
    assert all(bool(listing.needs) != listing.name.startswith("tiny") for listing in listings())


def test_a_row_names_the_tables_that_print_it(capsys):
    assert main(["recipes"]) == 0
    printed = capsys.readouterr().out
    needs = "snli, multi_nli, stsb/dev, FacebookAI/roberta-base, 4 OPUS-MT models"
    scored = "stsb/dev, sts, senteval (sst5: your files)"
    assert f"BSL-RoBERTa (BSL Table 1 + 2) · needs {needs} · scored on {scored} · " in printed
    assert f"IS-BERT Table 4 · {COMMANDS['BERT-STSb']}\n" in printed


def test_data_is_listed_that_is_learnt_from_chosen_by_or_looked_up_in():
    needs = {listing.name: set(listing.needs) for listing in listings()}
    assert {"stsb/train", "stsb/dev", "snli"} <= needs["sbert-nli-stsb"]
    assert "WordNet 3.0" in needs["synonym"]
    assert {"afs (your files)", "stsb/dev"} <= needs["afs"]
    assert not any(name.startswith("stsb") for name in needs["bert-avg"])  # nothing is trained, so nothing is chosen
    scored = {listing.name: listing.scored_on for listing in listings()}
    assert scored["afs"] == ("afs (your files)",)
    assert scored["tiny"] == ("embedded:stsb/dev", "embedded:stsb/test")


def test_for_programs_it_is_json(capsys):
    assert main(["recipes", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == list(RECIPES)


def test_hours_are_translation_and_training_at_the_published_rates():
    sentences = (550_152 + 392_702) * 4 // 3
    expected = sentences * 4 * 16 / TOKENS_PER_S + sentences / PAIRS_PER_S
    assert gpu_hours(recipe("nli")) == pytest.approx(expected / 3600, rel=1e-5)
    entailed = (550_152 + 392_702) // 3
    assert gpu_hours(recipe("entail")) == pytest.approx(entailed / PAIRS_PER_S / 3600, rel=1e-5)


def test_a_bound_on_sentences_and_steps_is_a_bound_on_hours():
    short = override(recipe("nli"), {"ingest": {"corpus": {"limit": 1000}}, "training": {"max_steps": 1}})
    assert gpu_hours(short) == pytest.approx((64_000 / TOKENS_PER_S + 64 / PAIRS_PER_S) / 3600)


def test_the_sentences_of_a_declared_set_are_those_of_the_split_that_is_read():
    assert gpu_hours(recipe("isbert-trec")) == pytest.approx(5452 / PAIRS_PER_S / 3600)
    assert gpu_hours(recipe("isbert-mrpc")) == pytest.approx(2 * 4076 / PAIRS_PER_S / 3600)


def test_own_files_take_as_long_as_they_are_and_what_is_not_trained_takes_none():
    assert gpu_hours(override(recipe("nli"), {"ingest": {"sources": [{"path": "sentences.txt"}]}})) is None
    assert gpu_hours(override(recipe("nli"), {"training": None})) == 0
