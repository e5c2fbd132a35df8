"""The model card names materials, licences and measurements."""

import polars as pl
import pytest
from huggingface_hub import ModelCard

from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.recipes import recipe
from bsl.models.evaluation.verdict import Verdict
from bsl.models.objectives.config import OBJECTIVE_CONFIGS
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.evaluation.kinds import KINDS
from bsl.tasks.reporting.base_card import NO_CARD, BaseCard
from bsl.tasks.reporting.card import TASKS, results_of
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.reporting.model_card import CardSubject, run_card
from bsl.tasks.reporting.run.report import report
from bsl.tasks.serving.measures import form_card

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
VERDICT = Verdict("BETTER", "by 2", "Use it.")


def card(config, base=NO_CARD):
    pairs = (5_913,) * len(config.phases)
    scores = SCORES.with_columns(model=pl.lit(config.systems[-1]))
    return run_card(config.title, config.settings, scores, CardSubject(CHECKPOINT, pairs, 64), VERDICT, base)


def test_every_main_metric_has_a_task_on_the_hub_of_its_own_kind():
    """F1 of MRPC was listed as sentence similarity."""
    metrics = {metric for kind in KINDS for metric in kind.headline}
    assert metrics <= {*TASKS}
    scores = pl.concat([SCORES.with_columns(metric=pl.lit(metric)) for metric in (*sorted(metrics), "unheard of")])
    listed = results_of(scores, "after BSL")
    assert {result.metric_type for result in listed} <= {on_hub for _, _, on_hub in TASKS.values()}
    (f1,) = (result for result in listed if result.metric_type == "f1")
    assert (f1.task_type, f1.task_name) == ("text-classification", "Classification of frozen vectors")


def test_tiny_card_lists_materials_licences_verdict_and_settings():
    text = card(recipe("tiny"))
    assert "| original encoder | embedded:bert-mini | CC BY-SA 4.0 |" in text
    assert "| sentences | embedded:nli-sample | CC BY-SA 4.0 |" in text
    assert "| translation of views | embedded:marian-mini-en-mul |" in text
    assert "\n**BETTER** than the original encoder: by 2. Use it.\n" in text
    assert "on 5,913 pairs of views (original, bt-de, bt-fr)" in text
    assert "| stsb test: spearman, all | 54.32 [50.0, 58.0] |" in text
    assert "| contrastive_weight | 0.1 |" in text
    assert "selected by Spearman on embedded:stsb/dev, so figures on embedded:stsb/dev are not test results" in text
    assert "Zhang, He, Liu, Bing and Li, 2021" in text
    assert 'SentenceTransformer("path/to/this/folder")' in text


def test_header_repeats_what_the_original_encoders_card_says():
    config = configured("tiny", ["encoder.model=./my-encoder"])
    text = card(config, BaseCard(licence="mit", languages=("de",), base="org/base"))
    header = ModelCard(text).data
    assert "| original encoder | ./my-encoder | mit |" in text
    assert (header.language, header.base_model) == (["de", "en"], "org/base")


def test_card_header_is_readable_by_the_hub():
    header = ModelCard(card(recipe("tiny"))).data
    assert (header.license, header.language, header.base_model) == ("cc-by-sa-4.0", ["en"], None)
    assert (header.library_name, header.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    (result,) = header.eval_results
    assert (result.dataset_type, result.dataset_split) == ("mteb/stsbenchmark-sts", "test")
    assert (result.metric_type, result.metric_value) == ("spearman_cosine", 0.5432)
    assert result.metric_name == "spearman, all, 95 % interval 0.5000 to 0.5800"


def test_nli_card_header_names_base_model_datasets_and_licence():
    header = ModelCard(card(recipe("nli"))).data
    assert (header.base_model, header.base_model_relation) == ("google-bert/bert-base-uncased", "finetune")
    assert header.datasets == ["stanfordnlp/snli", "nyu-mll/multi_nli"]
    assert (header.license, header.license_link) == ("other", "README.md")
    assert ModelCard(card(recipe("multilingual"))).data.language == ["ar", "de", "en", "es", "fr", "tr"]


def test_card_results_exclude_the_set_that_selected_the_checkpoint():
    dev = SCORES.with_columns(split=pl.lit("dev"))
    assert results_of(dev, "after BSL", "embedded:stsb/dev") == []
    assert [figure.dataset_split for figure in results_of(dev, "after BSL")] == ["dev"]


@pytest.mark.parametrize("select", ["best", "best-or-start"])
def test_card_names_the_selection_set_and_excludes_its_scores(select):
    config = configured("tiny", [f"training.select={select}"])
    dev = SCORES.with_columns(split=pl.lit("dev"), model=pl.lit(config.systems[-1]))
    text = run_card(config.title, config.settings, dev, CardSubject(CHECKPOINT, (5_913,), 64), VERDICT)
    assert ModelCard(text).data.eval_results is None
    assert "selected by Spearman on embedded:stsb/dev, so figures on embedded:stsb/dev are not test results" in text


def test_card_of_whitened_encoder_describes_the_whitening_module():
    config = recipe("tiny-whitening")
    label = config.systems[0] + config.after_transform
    scores = SCORES.with_columns(model=pl.lit(label))
    text = run_card(config.title, config.settings, scores, CardSubject(CHECKPOINT, (), 64, label), None)
    assert "The last module is whitening, fitted on the sentences of the run." in text
    assert "this encoder's column is" in text
    assert "whitening" in ModelCard(text).data.tags


def test_form_card_describes_the_form_without_full_encoder_results():
    row = {"form": "static table", "path": "static", "width": "256", "MB": "1.2", "STS-B test": "60.00 [57.0, 63.0]"}
    text = form_card(card(recipe("tiny")), row | {"difference": "-1.00 [-2.00, +0.10]"})
    header = ModelCard(text).data
    assert "static-embeddings" in header.tags
    assert (header.license, header.eval_results) == ("cc-by-sa-4.0", None)
    assert "60.00 [57.0, 63.0], -1.00 [-2.00, +0.10] compared with the full encoder" in text


def test_card_cites_declared_data_and_marks_undeclared_licences():
    text = card(recipe("nli"))
    assert "Bowman et al., 2015" in text
    assert "| sentences | snli | CC BY-SA 4.0 |" in text
    assert "| original encoder | google-bert/bert-base-uncased | Apache-2.0 |" in text
    own = configured("nli", ['ingest.sources=[{"path": "sentences.txt"}]'])
    assert "| sentences | your own files | your own data |" in card(own)


@pytest.mark.parametrize("setting", ["training.select=last", "evaluation.dev=null"])
def test_card_without_selection_states_no_labels_were_used(setting):
    assert "The checkpoint is the last step, selected without labels." in card(configured("tiny", [setting]))


def test_card_states_that_nli_labels_selected_the_pairs():
    text = card(configured("tiny-entail", ["training.select=last"]))
    assert "of views (original, entail" in text
    assert "Pairs were selected by labels of natural language inference. The checkpoint is the last step" in text


def test_card_lists_wordnet_and_masked_language_model_as_materials():
    assert "| synonyms | WordNet 3.0 | WordNet License |" in card(recipe("synonym"))
    text = card(recipe("mlm"))
    assert "of views (original, mlm)" in text
    assert "| refilled tokens | FacebookAI/roberta-base | MIT |" in text


def test_every_objective_has_a_title_and_citation():
    assert all(config.title and config.citation for config in OBJECTIVE_CONFIGS.values())


def test_corpus_by_path_or_name_has_different_report_keys():
    """The corpus artifact is the same, but only the dataset's name brings a licence and a citation."""
    by_name = recipe("nli")
    path = SourceSpec(path="/data/snli/train.parquet", name="snli")
    by_path = by_name.model_copy(update={"ingest": by_name.ingest.model_copy(update={"sources": (path,)})})
    fixed = {"title": "t", "scores": (), "comparisons": (), "missing": Missing(), "checkpoints": (CHECKPOINT,)}
    keys = {
        report._ref({**fixed, "settings": config.settings, "sources": config.ingest.sources}).key
        for config in (by_name, by_path)
    }
    assert len(keys) == 2
    assert "Bowman et al., 2015" not in card(by_path)


@pytest.mark.parametrize(("name", "learnt"), [("sbert-nli-stsb", "stsb/train"), ("tiny-stsb", "embedded:stsb/train")])
def test_card_lists_scored_training_pairs_as_material(name, learnt):
    text = card(recipe(name))
    assert f"| scored pairs | {learnt} | scores CC BY-SA 4.0; " in text
    assert f"on 5,913 scored pairs of {learnt}" in text
    assert f"Training used the labels of {learnt}." in text
    assert "of views (" not in text


def test_card_header_lists_scored_training_sets_from_the_hub():
    datasets = ModelCard(card(recipe("sbert-nli-stsb"))).data.datasets
    assert datasets == ["stanfordnlp/snli", "nyu-mll/multi_nli", "mteb/stsbenchmark-sts"]
