"""The model card says what went in, under which terms, and how it was measured."""

import polars as pl
import pytest

from flows.cli.settings import configured
from flows.recipes import recipe
from models.objectives.config import OBJECTIVE_CONFIGS
from models.report.card import model_card
from storage.refs import CheckpointRef
from storage.sources import SourceSpec
from tasks.card import card_content
from tasks.evaluation.summary import Missing
from tasks.report import report

SCORES = pl.DataFrame(
    {
        "model": ["after BSL"],
        "dataset": ["stsb"],
        "subset": ["all"],
        "split": ["test"],
        "metric": ["spearman"],
        "protocol": ["all"],
        "value": [0.5432],
        "ci_low": [0.5],
        "ci_high": [0.58],
    }
)
CHECKPOINT = CheckpointRef(key="c" * 64)


def card(config):
    pairs = (5_913,) * len(config.phases)
    return model_card(
        card_content(config.title, config.settings, SCORES, CHECKPOINT, pairs, 64, "**BETTER** than the start.")
    )


def test_tiny_names_its_materials_with_their_licences():
    text = card(recipe("tiny"))
    assert text.startswith("---\nlibrary_name: sentence-transformers\n")
    assert "| encoder at the start | embedded:bert-mini | CC BY-SA 4.0 |" in text
    assert "| sentences | embedded:nli-sample | CC BY-SA 4.0 |" in text
    assert "| translation of views | embedded:marian-mini-en-mul |" in text
    assert "\n**BETTER** than the start.\n" in text
    assert "on 5,913 pairs of views (original, bt-de, bt-fr)" in text
    assert "| stsb test: spearman, all | 54.32 [50.0, 58.0] |" in text
    assert "| contrastive_weight | 0.1 |" in text
    assert "chosen by Spearman on embedded:stsb/dev" in text
    assert "Zhang, He, Liu, Bing and Li, 2021" in text
    assert 'SentenceTransformer("path/to/this/folder")' in text


def test_declared_data_bring_licence_and_citation_and_undeclared_say_so():
    text = card(recipe("nli"))
    assert "Bowman et al., 2015" in text
    assert "| sentences | snli | CC BY-SA 4.0 |" in text
    assert "| encoder at the start | google-bert/bert-base-uncased | not declared here |" in text
    own = configured("nli", ['ingest.sources=[{"path": "sentences.txt"}]'])
    assert "| sentences | files of your own | not declared here |" in card(own)


@pytest.mark.parametrize("setting", ["training.select=last", "evaluation.dev=null"])
def test_without_selection_no_label_was_used(setting):
    assert "The checkpoint was the last step, chosen by no label." in card(configured("tiny", [setting]))


def test_labels_that_chose_the_pairs_are_named():
    text = card(configured("tiny-entail", ["training.select=last"]))
    assert "of views (original, entail" in text
    assert "Pairs were chosen by labels of natural language inference. The checkpoint was the last step" in text


def test_words_and_models_that_rewrote_sentences_are_materials():
    assert "| synonyms | WordNet 3.0 | WordNet License |" in card(recipe("synonym"))
    text = card(recipe("mlm"))
    assert "of views (original, mlm)" in text
    assert "| refilled tokens | FacebookAI/roberta-base | not declared here |" in text


def test_every_objective_is_cited():
    assert all(config.title and config.citation for config in OBJECTIVE_CONFIGS.values())


def test_the_same_bytes_by_path_and_by_name_have_a_card_each():
    """The corpus is the same artifact, but only the name brings a licence and a citation."""
    by_name = recipe("nli")
    path = SourceSpec(path="/data/snli/train.parquet", name="snli")
    by_path = by_name.model_copy(update={"ingest": by_name.ingest.model_copy(update={"sources": (path,)})})
    fixed = {"title": "t", "scores": (), "comparisons": (), "missing": Missing(), "checkpoints": (CHECKPOINT,)}
    keys = {
        report._make_ref({**fixed, "settings": config.settings, "sources": config.ingest.sources}).key
        for config in (by_name, by_path)
    }
    assert len(keys) == 2
    assert "Bowman et al., 2015" not in card(by_path)
