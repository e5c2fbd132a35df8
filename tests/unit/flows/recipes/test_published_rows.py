"""Every recipe has a published row or says that it has none; a run that deviates from its row says why."""

import shlex

import pytest

from bsl.flows.cli.main import main, parsed
from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.config import override
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.isbert import ROW, TASKS
from bsl.flows.recipes.published_rows import COMMANDS, REASONS, ROWS, cells_of, deviations, row_of
from bsl.models.evaluation.published import columns_of, rows_of
from bsl.tasks.evaluation.kinds import names_of, tuned_names
from tests.every import every

BEHIND = [(row, name) for row, names in ROWS.items() for name in names]
ENTAILED = "BSL-BERT, NLI_entail"
SNLI, MULTI = "{'dataset':'snli','split':'train'}", "{'dataset':'multi_nli','split':'train'}"
FEW = "{'dataset':'snli','split':'train','limit':9}"


@every(BEHIND)
def test_recipe_is_scored_like_its_row_and_deviates_only_in_translator_and_own_files(row, name):
    config = recipe(name)
    assert row in config.published
    reasons = deviations(config, row)
    assert all(why.startswith(("another translator: ", "another corpus: your own files")) for why in reasons)
    scored = {part.partition("/")[0] for part in names_of(config.evaluation.sets)}
    printed = [set(columns_of(published.suite)) - {"avg", "stsb/dev"} for published in rows_of(row)]
    # If several tables print a row, the recipe is scored on all sets of at least one of them.
    assert any(columns <= scored for columns in printed) or name.startswith("isbert-")


@every(
    [
        ("entail", ENTAILED, "", None),
        ("entail", ENTAILED, "training.seed=7", None),
        ("entail", ENTAILED, "encoder.model=a/b", "another encoder: a/b; the row's is google-bert/bert-base-uncased"),
        ("entail", ENTAILED, "encoder.pooling=cls", "the encoder is loaded differently: pooling cls for mean"),
        ("entail", ENTAILED, "ingest.corpus.limit=1000", "only a part of the corpus: limit 1000 for none"),
        ("entail", ENTAILED, "training.objective.k=4", "other training: objective.k 4 for 8"),
        ("entail", ENTAILED, "evaluation.dev=null", "the step is selected by no set; the row's by stsb/dev"),
        ("entail", ENTAILED, f"ingest.sources=[{FEW},{MULTI}]", "only a part of the corpus: 9 sentences of snli"),
        ("entail", ENTAILED, f"ingest.sources=[{SNLI}]", "another corpus: snli train; the row's is snli train and "),
        ("glove", "GloVe avg.", "encoder.model=/vectors/glove.840B.300d.txt", None),
        ("glove", "GloVe avg.", "words.case=lower", "words are split differently: case lower for file"),
        ("published-sbert", "SBERT", "encoder.max_length=9", "the encoder is loaded differently: max_length 9 for "),
        ("published-sroberta", "SRoBERTa", "encoder.max_length=9", "the encoder is loaded differently: max_length 9"),
        ("bsl-sbert-nli", "BSL-SBERT", "encoder.max_length=9", "the encoder is loaded differently: max_length 9 for "),
        ("flow", "BERT-flow", "transform.lr=0.01", "another transform: lr 0.01 for 0.001"),
        ("flow", "BERT-flow", "transform.seed=7", None),
        ("flow", "BERT-flow", "transform_on=targets", "fitted on the targets; the row's on the corpus"),
        ("isbert-cr", ROW, "ingest.sources=[{'dataset':'mr'}]", "another corpus: mr; the row's is cr"),
        ("isbert-cr", ROW, "evaluation.probe.folds=5", "other classifiers: folds 5 for 10"),
        ("isbert-cr", ROW, "evaluation.probe.seed=5", None),
        ("glove", "GloVe avg.", "evaluation.precision=bf16", "scored in another precision: bf16 for fp32"),
    ]
)
def test_deviation_describes_the_changed_setting(name, row, setting, told):
    config = configured(name, [setting.replace("'", '"')] if setting else [])
    reasons = deviations(config, row)
    assert len(reasons) == (told is not None)
    assert all(why.startswith(told) for why in reasons)


def test_deviations_describe_teachers_and_trainings():
    taught, row = recipe("mbert-sbert"), "mBERT ← SBERT-nli-stsb"
    for changes, told in (
        ({"teacher": {"model": "other/teacher"}}, "other teacher: model other/teacher"),
        ({"more_teachers": [{"model": "a/second"}]}, "other teacher: more_teachers (a/second"),
    ):
        assert any(why.startswith(told) for why in deviations(override(taught, changes), row))
    first_only = override(recipe("sbert-nli-stsb"), {"earlier": []})
    assert "other training 1 before the last: absent" in deviations(first_only, "SBERT-NLI-STSb")
    twice = override(recipe("entail"), {"earlier": [phase.model_dump() for phase in recipe("entail").phases]})
    assert deviations(twice, ENTAILED) == ("other training 1 before the last: not in the row",)
    row, name = row_of("tiny")
    kinds = {why.partition(":")[0] for why in deviations(recipe(name), row)}
    assert (row, name) == ("BSL-BERT", "tiny")
    assert {"another encoder", "another corpus", "another translator", "other training"} <= kinds


@pytest.mark.parametrize("row", COMMANDS)
def test_reproduce_of_fine_tuning_row_suggests_the_evaluate_command(row, capsys):
    assert rows_of(row)
    _, bound = parsed(shlex.split(COMMANDS[row])[1:])
    assert set(bound.arguments["suite"]) <= set(tuned_names())
    assert main(["reproduce", row]) == 2
    assert COMMANDS[row] in capsys.readouterr().err


def test_reasons_name_suites_that_exist():
    for reason in REASONS.values():
        assert names_of(reason.partition("--suite ")[2].split()) or "--suite" not in reason


def test_row_averaged_over_other_layers_is_not_reproduced_by_first_last():
    with pytest.raises(ValueError, match=r"no recipe or command reproduces row 'first-last avg., BERT-base': .*60\.73"):
        row_of("first-last avg., BERT-base")
    (reason,) = deviations(recipe("bert-first-last"), row_of("bert-first-last")[0])
    assert reason == "the encoder is loaded differently: pooling first-last for second-to-last"


def test_published_simcse_is_scored_without_its_training_length():
    names = [name for name in RECIPES if name.startswith("published-simcse")]
    assert [recipe(name).encoder.length for name in names] == [512] * 4


def test_recipes_sharing_a_row_are_compared_by_task_cells():
    of_tasks = [cells_of(ROW, f"{system}-{task}") for system in ("isbert", "bsl") for task in TASKS]
    assert of_tasks == [(task,) for _ in range(2) for task in TASKS]
    assert {cells_of(row, name) for row, name in BEHIND if row != ROW} == {()}
    assert set(TASKS) <= set(columns_of("senteval"))


@every(sorted(RECIPES))
def test_row_of_returns_published_row_or_raises(name):
    published = recipe(name).published
    if published and published[0] in ROWS:
        assert row_of(name) == (published[0], name)
    else:
        with pytest.raises(ValueError, match=r"reproduces no published row|fine-tuned. Measure the row with: bsl"):
            row_of(name)


def test_unknown_row_error_has_one_suggestion_and_the_command_that_lists_all():
    with pytest.raises(ValueError, match=r"recipe 'BSL-BRT'. Did you mean 'BSL-BERT'\? `bsl recipes --all` lists"):
        row_of("BSL-BRT")
