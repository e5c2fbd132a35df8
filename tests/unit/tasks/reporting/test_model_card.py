"""The model card names materials, licences and measurements."""

import polars as pl
import pytest
from huggingface_hub import ModelCard

from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.recipes import recipe
from bsl.models.evaluation.verdict import Verdict
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.evaluation.kinds import KINDS
from bsl.tasks.reporting.card import NO_CARD, TASKS, BaseCard, results_of
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.reporting.model_card import CardSubject, run_card
from bsl.tasks.reporting.run.report import report
from bsl.tasks.serving.measures import form_card
from tests.corpora import score_row

ROW = score_row("stsb", 0.5432, model="after BSL", ci_low=0.5, ci_high=0.58)
CHECKPOINT = CheckpointRef(key="c" * 64)
VERDICT = Verdict("BETTER", "by 2", "Use it.")


def card(config, base=NO_CARD, verdict=VERDICT, **changed):
    pairs = (5_913,) * len(config.phases)
    scores = pl.DataFrame([{**ROW, "model": "another", "value": 0.1}, {**ROW, "model": config.systems[-1], **changed}])
    return run_card(config.title, config.settings, scores, CardSubject(CHECKPOINT, pairs, 64), verdict, base)


OWN_FILES = 'ingest.sources=[{"path": "sentences.txt"}]'
SELECTED = "selected by Spearman on embedded:stsb/dev, so figures on embedded:stsb/dev are not test results"
UNSELECTED = "The checkpoint is the last step, selected without labels."
CARDS = {
    "tiny": (
        "tiny", [],
        ["\n**BETTER** than the original encoder: by 2. Use it.\n", "on 5,913 pairs of views (original, bt-de, bt-fr)",
         "| 54.32 [50.0, 58.0] |", "| contrastive_weight | 0.1 |",
         "| original encoder | embedded:bert-mini | CC BY-SA 4.0 |", "| sentences | embedded:nli-sample | CC BY-SA 4.0",
         "| translation of views | embedded:marian-mini-en-mul |", "Zhang, He, Liu, Bing and Li, 2021"],
    ),
    "selected": ("tiny", ["training.select=best-or-start"], [SELECTED]),
    "few steps": ("tiny", ["training.max_steps=40"], ["on 2,560 of 5,913 pairs of views"]),
    "last step": ("tiny", ["training.select=last"], [UNSELECTED]),
    "no dev set": ("tiny", ["evaluation.dev=null"], [UNSELECTED]),
    "entailment": (
        "tiny-entail", ["training.select=last"],
        ["of views (original, entail", f"Pairs were selected by labels of natural language inference. {UNSELECTED}"],
    ),
    "materials of the Hub": (
        "nli", [],
        ["| original encoder | google-bert/bert-base-uncased | Apache-2.0 |", "| sentences | snli | CC BY-SA 4.0 |",
         "Bowman et al., 2015"],
    ),
    "translations in a column": (
        "tiny-multilingual",
        ["augment.translations=[]", 'augment.given=[{"method": "mine", "column": "other"}]',
         'pairs.pairings=[{"view_1": "original", "view_2": "mine", "lang_2": "nl"}]'],
        ["language:\n- en\n- nl\n", "Languages of the sentences: en, nl. Others were not tested, unless a set above"],
    ),
    "own files": ("nli", [OWN_FILES], ["| sentences | your own files | your own data |"]),
    "own labels": (
        "tiny-stsb",
        [
            OWN_FILES, "ingest.own_text.labels=rows.csv", "pairs.scored=own/labels",
            "training.objective.anchor_weight=0.2",
        ],
        ["| labels | your own file | your own data |", "| general sentences | embedded:stsb/train | scores CC BY-SA",
         "on 5,913 scored pairs of the labels in your own file", "Training used the labels of your own file."],
    ),
    "WordNet": ("synonym", [], ["| synonyms | WordNet 3.0 | WordNet License |"]),
    "masked model": ("mlm", [], ["of views (original, mlm)", "| refilled tokens | FacebookAI/roberta-base | MIT |"]),
    **{
        f"scored pairs of {name}": (
            name, [],
            [f"| scored pairs | {learnt} | scores CC BY-SA 4.0; ", f"on 5,913 scored pairs of {learnt}",
             f"Training used the labels of {learnt}."],
        )
        for name, learnt in (("sbert-nli-stsb", "stsb/train"), ("tiny-stsb", "embedded:stsb/train"))
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "lines"), CARDS.values(), ids=CARDS)
def test_card_has_lines(name, changes, lines):
    text = card(configured(name, changes))
    assert [line for line in lines if line not in text] == []
    assert ("of views (" in text) != ("scored pairs of" in text)


def test_card_of_a_stopped_training_names_the_set_that_chose_its_checkpoint():
    """Regression: with `select=last`, "the last step, selected without labels"."""
    assert SELECTED in card(configured("tiny", ["training.select=last"]), verdict=Verdict("STOPPED", "collapse", ""))


HEADERS = {
    "tiny": {
        "license": "cc-by-sa-4.0", "language": ["en"], "base_model": None,
        "library_name": "sentence-transformers", "pipeline_tag": "sentence-similarity",
    },
    "nli": {
        "license": "other", "license_link": "README.md", "base_model": "google-bert/bert-base-uncased",
        "base_model_relation": "finetune", "datasets": ["stanfordnlp/snli", "nyu-mll/multi_nli"],
    },
    "multilingual": {"language": ["ar", "de", "en", "es", "fr", "tr"]},
    "sbert-nli-stsb": {"datasets": ["stanfordnlp/snli", "nyu-mll/multi_nli", "mteb/stsbenchmark-sts"]},
}  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), HEADERS.items())
def test_header_is_readable_by_the_hub(name, expected):
    header = ModelCard(card(recipe(name))).data
    assert {field: getattr(header, field) for field in expected} == expected
    (result,) = header.eval_results
    assert (result.dataset_type, result.dataset_split) == ("mteb/stsbenchmark-sts", "test")
    assert (result.metric_type, result.metric_value) == ("spearman_cosine", 0.5432)
    assert result.metric_name == "spearman, all, 95 % interval 0.5000 to 0.5800"


def test_header_repeats_what_the_original_encoders_card_says():
    base = BaseCard(licence="mit", languages=("de",), base="org/base")
    text = card(configured("tiny", ["encoder.model=./my-encoder"]), base)
    assert "| original encoder | my-encoder | mit |" in text
    assert (ModelCard(text).data.language, ModelCard(text).data.base_model) == (["de", "en"], "org/base")


def test_results_exclude_the_set_that_selected_the_checkpoint():
    assert ModelCard(card(recipe("tiny"), split="dev")).data.eval_results is None
    dev = pl.DataFrame([{**ROW, "split": "dev"}])
    assert [figure.dataset_split for figure in results_of(dev, "after BSL")] == ["dev"]


def test_every_main_metric_has_a_task_on_the_hub_of_its_own_kind():
    """F1 of MRPC was listed as sentence similarity."""
    metrics = {metric for kind in KINDS for metric in kind.headline}
    assert metrics <= {*TASKS}
    listed = results_of(
        pl.DataFrame([{**ROW, "metric": name} for name in (*sorted(metrics), "unheard of")]), "after BSL"
    )
    assert {result.metric_type for result in listed} <= {on_hub for _, _, on_hub in TASKS.values()}
    (f1,) = (result for result in listed if result.metric_type == "f1")
    assert (f1.task_type, f1.task_name) == ("text-classification", "Classification of frozen vectors")


def test_form_card_describes_the_form_without_full_encoder_results():
    row = {"form": "static table", "path": "static", "width": "256", "MB": "1.2", "STS-B test": "60.00 [57.0, 63.0]"}
    text = form_card(card(recipe("tiny")), row | {"difference": "-1.00 [-2.00, +0.10]"})
    header = ModelCard(text).data
    assert "static-embeddings" in header.tags
    assert (header.license, header.eval_results) == ("cc-by-sa-4.0", None)
    assert "60.00 [57.0, 63.0], -1.00 [-2.00, +0.10] compared with the full encoder" in text


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


def test_card_names_files_and_models_of_the_user_without_their_folders():
    name = "labels:/home/me/secret/rows.csv#label=queue"
    models = ["encoder.model=/home/me/secret/start", "teacher.model=/home/me/secret/teacher/"]
    verdict = Verdict("BETTER", f"+2.00 on {name} all", "Use it.")
    text = card(configured("tiny", models), verdict=verdict, dataset=name, split="all", metric="accuracy")
    assert "secret" not in text
    assert text.count("labels:rows.csv#label=queue") == 4  # sentence, row of the table; name and type in the header
    for line in ("A sentence encoder: start, mean", "| original encoder | start |", "| teacher | teacher |"):
        assert line in text


def test_card_of_an_untrained_encoder_with_a_transform_names_no_folder():
    config = configured("tiny", ["training=null", "encoder.model=/home/me/secret/start", "transform=whitening"])
    scores = pl.DataFrame([{**ROW, "model": config.settings.result}])
    subject = CardSubject(CHECKPOINT, (), 64, config.settings.result)
    text = run_card(config.title, config.settings, scores, subject, None)
    assert "secret" not in text
    assert text.count("start (mean) + whitening (corpus)") == 2  # this encoder's column, and its heading
    assert len(ModelCard(text).data.eval_results) == 1


def test_files_of_the_same_name_are_several_rows_of_the_card():
    """Regression: only the last one's figure was left."""
    config = recipe("tiny")
    rows = [
        {**ROW, "model": config.systems[-1], "dataset": f"labels:/home/me/{folder}/rows.csv", "value": value}
        for folder, value in (("a", 0.1), ("b", 0.2))
    ]
    text = run_card("t", config.settings, pl.DataFrame(rows), CardSubject(CHECKPOINT, (5_913,), 64), VERDICT)
    for line in ("| labels:a/rows.csv test: spearman, all | 10.00", "| labels:b/rows.csv test: spearman, all | 20.00"):
        assert line in text
    assert len(ModelCard(text).data.eval_results) == 2
